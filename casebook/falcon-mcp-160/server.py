"""A server over stdio whose tool asks a slow HTTP interface with requests: `inline`, or in a `thread`."""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio.to_thread
import requests
from mcp.server.fastmcp import FastMCP


class Vendor(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


vendor = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
threading.Thread(target=vendor.serve_forever, daemon=True).start()
mcp = FastMCP("falcon")


def search() -> str:
    return str(requests.get(f"http://127.0.0.1:{vendor.server_port}/detects", timeout=5).status_code)


async def search_in_thread() -> str:
    return await anyio.to_thread.run_sync(search)


mcp.add_tool(search if sys.argv[1] == "inline" else search_in_thread, name="search_detections")
mcp.run()
