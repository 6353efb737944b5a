"""A stateless server that replies in JSON, behind uvicorn. Argument: the number of its workers."""

import os
import sys

import uvicorn
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("weather", stateless_http=True, json_response=True)


@mcp.tool()
async def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return f"sunny in {city}"


app = mcp.streamable_http_app()

if __name__ == "__main__":
    uvicorn.run("server:app", host="127.0.0.1", port=int(os.environ["PORT"]), workers=int(sys.argv[1]))
