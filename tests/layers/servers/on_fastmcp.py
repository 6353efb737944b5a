"""On FastMCP."""

from calculator import filled
from fastmcp import Context, FastMCP

mcp = filled(FastMCP("double"), Context)
