"""A server of FastMCP with a synchronous tool of 200 ms."""

import os
import time

from fastmcp import FastMCP

mcp = FastMCP("reports")


@mcp.tool
def report() -> str:
    time.sleep(0.2)
    return "done"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
