"""A server whose tool starts a synchronization in the background: `blocking`, or in a `thread`."""

import asyncio
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from mcp.server.fastmcp import FastMCP


class Confluence(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.8)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


confluence = ThreadingHTTPServer(("127.0.0.1", 0), Confluence)
threading.Thread(target=confluence.serve_forever, daemon=True).start()
mcp = FastMCP("memory", host="127.0.0.1", port=int(os.environ["PORT"]))
running = set()


def get_page(number: int) -> int:
    return requests.get(f"http://127.0.0.1:{confluence.server_port}/page/{number}", timeout=5).status_code


async def fetch() -> None:
    for number in range(6):
        if sys.argv[1] == "thread":
            await asyncio.to_thread(get_page, number)
        else:
            get_page(number)
            await asyncio.sleep(0.02)


@mcp.tool()
async def source_sync() -> str:
    """Starts a synchronization."""
    task = asyncio.create_task(fetch())
    running.add(task)
    return "started"


@mcp.tool()
async def search(words: str) -> str:
    """Searches."""
    return f"nothing on {words}"


mcp.run("streamable-http")
