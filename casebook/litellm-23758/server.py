"""Serves one tool by the official SDK's app, mounted at /mcp in an app of FastAPI."""

import contextlib
import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("litellm", streamable_http_path="/")


@mcp.tool()
async def echo(text: str) -> str:
    """Returns the text."""
    return text


@contextlib.asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with mcp.session_manager.run():
        yield


mounted = mcp.streamable_http_app()
app = FastAPI(lifespan=lifespan)
app.mount("/mcp", mounted)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
