"""On mcpace."""

from calculator import filled

from mcpace import Context, MCPServer

mcp = filled(MCPServer("double"), Context)
