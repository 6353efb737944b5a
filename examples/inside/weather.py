"""A weather server whose tool is slow: mcpace measure --inside tells why. It needs the packages "mcp<2" and httpx."""

import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("weather")


@mcp.tool()
async def forecast(city: str) -> str:
    """The weather in a city."""
    for kind in ("position", "now", "hourly", "daily", "alerts"):
        async with httpx.AsyncClient() as client:
            reply = await client.get(f"http://127.0.0.1:8099/{kind}", params={"city": city})
            reply.raise_for_status()
    return f"It rains in {city}."


mcp.run()
