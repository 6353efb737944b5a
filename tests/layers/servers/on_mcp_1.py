"""On the official SDK 1.x."""

from calculator import filled
from mcp.server.fastmcp import Context, FastMCP

mcp = filled(FastMCP("double"), Context)
