"""A server over stdio whose middleware verifies the token before listings and calls (`ask`), or once (`cache`)."""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware


class Storage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.2 if self.path.endswith("verify") else 0.1)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


storage = ThreadingHTTPServer(("127.0.0.1", 0), Storage)
threading.Thread(target=storage.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{storage.server_port}"


class ToolPermissions(Middleware):
    verified = False

    async def verify_token(self) -> None:
        if sys.argv[1] == "ask" or not self.verified:
            async with httpx.AsyncClient() as http:
                self.verified = (await http.get(f"{URL}/tokens/verify")).is_success

    async def on_list_tools(self, context, call_next):
        await self.verify_token()
        return await call_next(context)

    async def on_call_tool(self, context, call_next):
        await self.verify_token()
        return await call_next(context)


mcp = FastMCP("storage", middleware=[ToolPermissions()])


@mcp.tool
async def get_buckets() -> int:
    async with httpx.AsyncClient() as http:
        return (await http.get(f"{URL}/buckets")).status_code


mcp.run(show_banner=False)
