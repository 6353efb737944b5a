"""A server of the official Python SDK 1.x; see ../README.md."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("python-1")


@server.tool()
def echo(text: str) -> str:
    """Says what you say."""
    return text


@server.tool()
async def steps(ctx: Context) -> str:
    """Tells its progress."""
    for step in range(3):
        await ctx.report_progress(step, 2)
    return "done"


@server.resource("test://static-text")
def static_text() -> str:
    """A text."""
    return "a text"


@server.prompt()
def greeting(name: str) -> str:
    """Greets."""
    return f"Hello, {name}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
