"""On mcpace, by FastMCP's names."""

from calculator import filled

from mcpace.fastmcp import Context, FastMCP

mcp = filled(FastMCP("double"), Context)
