"""A server of FastMCP behind uvicorn, with sessions or without."""

import os
import sys

import uvicorn
from fastmcp import FastMCP

mcp = FastMCP("weather")


@mcp.tool
async def forecast(city: str) -> str:
    return f"sunny in {city}"


app = mcp.http_app(stateless_http=True) if sys.argv[1] == "stateless" else mcp.http_app()
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
