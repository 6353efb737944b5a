"""A server of FastMCP whose async tool updates an issue with requests: `blocking`, or in a `thread`."""

import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio.to_thread
import requests
from fastmcp import FastMCP


class Jira(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        time.sleep(0.8)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


jira = ThreadingHTTPServer(("127.0.0.1", 0), Jira)
threading.Thread(target=jira.serve_forever, daemon=True).start()
mcp = FastMCP("atlassian")


def put_issue(key: str) -> int:
    return requests.put(f"http://127.0.0.1:{jira.server_port}/issue/{key}", timeout=5).status_code


@mcp.tool
async def update_issue(key: str) -> int:
    if sys.argv[1] == "thread":
        return await anyio.to_thread.run_sync(put_issue, key)
    return put_issue(key)


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
