"""On mcpace.django, the same service and serializer as on_drf_mcp.py."""

from drf_services import filled

from mcpace.django import AllowAny, MCPServer

server = filled(MCPServer("double", auth=AllowAny()))
