"""A gateway that misbehaves on purpose: it holds every reply back, drops headers, and opens a connection a request.

``buffering_gateway.py URL [PORT]`` passes requests on to the URL of an MCP server.
"""

from __future__ import annotations

import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

DROPPED = ("x-mcpace-probe", "connection", "host", "content-length", "transfer-encoding")


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        upstream = urlsplit(sys.argv[1])
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in DROPPED}
        connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=30)
        try:
            connection.request(self.command, upstream.path, body=body or None, headers=headers)
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in DROPPED and name.lower() != "cache-control":
                self.send_header(name, value)
        self.send_header("via", "1.1 buffering")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET = do_DELETE = _pass_on

    def log_message(self, *_: object) -> None: ...


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Gateway).serve_forever()
