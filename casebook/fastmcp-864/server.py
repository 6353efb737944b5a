"""A server of FastMCP with a tool without async."""

import os
import time

from fastmcp import FastMCP

mcp = FastMCP("work")


@mcp.tool
def work() -> str:
    time.sleep(0.3)
    return "done"


mcp.run("streamable-http", host="127.0.0.1", port=int(os.environ["PORT"]))
