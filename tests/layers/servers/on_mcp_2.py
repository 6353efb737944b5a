"""On the official SDK 2.x."""

from calculator import filled
from mcp.server.mcpserver import Context, MCPServer

mcp = filled(MCPServer("double"), Context)
