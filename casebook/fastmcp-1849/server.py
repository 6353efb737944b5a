"""A FastMCP server, mounted into a FastAPI application as the thread advises."""

import os

import uvicorn
from fastapi import FastAPI
from fastmcp import FastMCP

mcp = FastMCP("weather")


@mcp.tool
async def forecast(city: str) -> str:
    return f"sunny in {city}"


mcp_app = mcp.http_app(path="/")
app = FastAPI(lifespan=mcp_app.lifespan)
app.mount("/mcp", mcp_app)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
