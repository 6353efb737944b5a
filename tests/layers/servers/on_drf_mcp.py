"""On djangorestframework-mcp-server, 0.4 and 0.54, as its own benchmark has it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework_mcp import MCPServer
from rest_framework_mcp.auth.backends.allow_any_backend import AllowAnyBackend
from rest_framework_mcp.transport.in_memory_session_store import InMemorySessionStore
from rest_framework_services.types.service_spec import ServiceSpec

urlpatterns: list[Any] = []


class Input(serializers.Serializer):
    n = serializers.IntegerField()


def double(*, data: dict[str, Any]) -> dict[str, Any]:
    return {"result": data["n"] * 2}


def fails(*, data: dict[str, Any]) -> None:
    raise ValueError(f"there is no invoice {data['n']}")


def spec(service: Any, *, atomic: bool) -> ServiceSpec[Any, Any, Any]:
    given = {"service": service, "input_serializer": Input, "atomic": atomic}
    # Newer releases want to be told who may call.
    known = "permission_classes" in ServiceSpec.__dataclass_fields__
    return ServiceSpec(**given, **({"permission_classes": [AllowAny]} if known else {}))


server = MCPServer(name="double", auth_backend=AllowAnyBackend(), session_store=InMemorySessionStore())
server.register_service_tool(name="double", spec=spec(double, atomic=False))
server.register_service_tool(name="double_atomic", spec=spec(double, atomic=True))
server.register_service_tool(name="fails", spec=spec(fails, atomic=False))
