"""Calls a FastMCP server whose tool asks an HTTP API three times, and writes the spans to a file.

Runs in an environment with fastmcp, httpx and its instrumentation, and opentelemetry-exporter-otlp-json-file.
Arguments: the file, and the number of calls that are made at one time.
"""

import asyncio
import http.server
import sys
import threading
import time

import httpx
from fastmcp import Client, FastMCP
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

CALLS = 6
API_S = 0.02


class Api(http.server.BaseHTTPRequestHandler):
    """Answers after a while."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Waits and answers."""
        time.sleep(API_S)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


async def run(path: str, at_once: int) -> None:
    """Makes all calls."""
    provider = TracerProvider(resource=Resource.create({"service.name": "weather"}))
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(path)))
    trace.set_tracer_provider(provider)
    HTTPXClientInstrumentor().instrument()
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    server = FastMCP("weather")
    asks = httpx.AsyncClient(base_url=f"http://127.0.0.1:{api.server_port}")

    @server.tool
    async def forecast(city: str) -> str:
        """Asks for three things, one after another."""
        for path in ("/now", "/alerts", "/later"):
            await asks.get(path, params={"city": city, "api_key": "PLANTED"})
        return city

    async with Client(server) as client:
        for _ in range(CALLS // at_once):
            await asyncio.gather(*(client.call_tool("forecast", {"city": "Oslo"}) for _ in range(at_once)))
    await asks.aclose()
    provider.shutdown()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
