"""A server with the SDK's application (`app`), or with a session manager that ends idle sessions (`idle-timeout`)."""

import contextlib
import os
import sys

import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

mcp = FastMCP("weather")


@mcp.tool()
async def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return f"sunny in {city}"


if sys.argv[1] == "app":
    app = mcp.streamable_http_app()
else:
    manager = StreamableHTTPSessionManager(app=mcp._mcp_server, session_idle_timeout=1)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette):
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
