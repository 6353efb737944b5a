"""A scripted stand-in for adapters' server programs: correct, slow to acknowledge, wrong, or dying. Standard library
only.

``split`` sends the head and body of each reply in two small writes without TCP_NODELAY, like servers that stall;
``whole`` sends one write.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = ("echo", "greet", "double", "wait", "work", "payload")
DEADLY_CALLS = 300
"""After which ``mortal`` ends: its check and some of its load."""


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "mode", "state"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    if given.mode == "unbuilt":
        sys.exit("no such port on this machine")
    if given.mode == "never":
        print("this version has no such mode", file=sys.stderr)
        sys.exit(127)
    if given.mode == "chatty":
        print("listening soon", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Handler.mode = given.mode
    server = Server((given.host, int(given.port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://{given.host}:{server.server_port}/mcp"
    ready = {"ready": True, "sdk": "scripted", "version": "1.2", "pid": os.getpid(), "url": url, "notes": ["Scripted."]}
    print(json.dumps(ready), flush=True)
    sys.stdin.read()


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False
    mode = ""
    calls = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in asked:
            self.answer(202, b"")
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            reply["result"] = self.result(asked["method"], asked.get("params") or {})
        except KeyError:
            reply["error"] = {"code": -32601, "message": "no such method"}
        self.answer(200, json.dumps(reply).encode())

    def do_GET(self) -> None:
        self.answer(405, b"")

    do_DELETE = do_GET

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        if method != "tools/call":
            raise KeyError(method)
        Handler.calls += 1
        if self.mode == "mortal" and Handler.calls > DEADLY_CALLS:
            os._exit(9)
        return {"content": [{"type": "text", "text": called(params["name"], params["arguments"], self.mode)}]}

    def answer(self, status: int, body: bytes) -> None:
        out, self.wfile = self.wfile, io.BytesIO()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        head, self.wfile = self.wfile.getvalue(), out
        for part in (head, body) if self.mode == "split" else (head + body,):
            out.write(part)

    def log_message(self, *_: object) -> None: ...


def called(tool: str, arguments: dict[str, Any], mode: str) -> str:
    if tool == "echo":
        return str(arguments["text"])
    if tool == "greet":
        return f"Hello, {arguments['name']}!"
    if tool == "double":
        return str((3 if mode == "liar" else 2) * arguments["n"])
    if tool == "wait":
        time.sleep(arguments["ms"] / 1e3)
        return "waited"
    return "worked" if tool == "work" else "x" * int(arguments["bytes"])


if __name__ == "__main__":
    main()
