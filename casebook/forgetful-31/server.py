"""A server of FastMCP that asks an identity provider about each token (`ask`) or keeps the answer (`cache`)."""

import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, TokenVerifier


class Provider(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.15)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=provider.serve_forever, daemon=True).start()


class Verifier(TokenVerifier):
    known: dict[str, AccessToken]

    async def verify_token(self, token: str) -> AccessToken | None:
        if sys.argv[1] == "cache" and token in self.known:
            return self.known[token]
        async with httpx.AsyncClient() as http:
            reply = await http.get(f"http://127.0.0.1:{provider.server_port}/user")
        if reply.status_code != 200:
            return None
        self.known[token] = AccessToken(token=token, client_id="host", scopes=[])
        return self.known[token]


verifier = Verifier()
verifier.known = {}
mcp = FastMCP("memory", auth=verifier)


@mcp.tool
async def recall(words: str) -> str:
    return f"nothing on {words}"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
