"""On djangorestframework-mcp-server, 0.4 and 0.54, as its own benchmark has it."""

from __future__ import annotations

from typing import Any

from drf_services import filled
from rest_framework_mcp import MCPServer
from rest_framework_mcp.auth.backends.allow_any_backend import AllowAnyBackend
from rest_framework_mcp.transport.in_memory_session_store import InMemorySessionStore

urlpatterns: list[Any] = []
server = filled(MCPServer(name="double", auth_backend=AllowAnyBackend(), session_store=InMemorySessionStore()))
