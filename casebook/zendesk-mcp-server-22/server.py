"""A low-level server over stdio whose handler asks a slow HTTP interface: `blocking`, or with an `executor`."""

import asyncio
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server


class Zendesk(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


zendesk = ThreadingHTTPServer(("127.0.0.1", 0), Zendesk)
threading.Thread(target=zendesk.serve_forever, daemon=True).start()
server = Server("zendesk")


def get_ticket() -> str:
    return str(requests.get(f"http://127.0.0.1:{zendesk.server_port}/ticket/1", timeout=5).status_code)


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [types.Tool(name="get_ticket", description="Gets a ticket.", inputSchema={"type": "object"})]


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    loop = asyncio.get_running_loop()
    text = await loop.run_in_executor(None, get_ticket) if sys.argv[1] == "executor" else get_ticket()
    return [types.TextContent(type="text", text=text)]


async def main() -> None:
    async with stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())


asyncio.run(main())
