"""On mcpace.django, the same service and serializer as on_drf_mcp.py."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import AllowAny as Everybody
from rest_framework_services.types.service_spec import ServiceSpec

from mcpace.django import AllowAny, MCPServer


class Input(serializers.Serializer):
    n = serializers.IntegerField()


def double(*, data: dict[str, Any]) -> dict[str, Any]:
    return {"result": data["n"] * 2}


def fails(*, data: dict[str, Any]) -> None:
    raise ValueError(f"there is no invoice {data['n']}")


def spec(service: Any, *, atomic: bool) -> ServiceSpec[Any, Any, Any]:
    return ServiceSpec(service=service, input_serializer=Input, atomic=atomic, permission_classes=[Everybody])


server = MCPServer("double", auth=AllowAny())
server.register_service_tool(name="double", spec=spec(double, atomic=False))
server.register_service_tool(name="double_atomic", spec=spec(double, atomic=True))
server.register_service_tool(name="fails", spec=spec(fails, atomic=False))
