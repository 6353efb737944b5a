"""The services of both Django servers, as djangorestframework-mcp-server's own benchmark has them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework_services.types.service_spec import ServiceSpec


class Input(serializers.Serializer):
    n = serializers.IntegerField()


def double(*, data: dict[str, Any]) -> dict[str, Any]:
    return {"result": data["n"] * 2}


def fails(*, data: dict[str, Any]) -> None:
    raise ValueError(f"there is no invoice {data['n']}")


def filled(server: Any) -> Any:
    """The server, with its tools."""
    server.register_service_tool(name="double", spec=_spec(double, atomic=False))
    server.register_service_tool(name="double_atomic", spec=_spec(double, atomic=True))
    server.register_service_tool(name="fails", spec=_spec(fails, atomic=False))
    return server


def _spec(service: Any, *, atomic: bool) -> ServiceSpec[Any, Any, Any]:
    given = {"service": service, "input_serializer": Input, "atomic": atomic}
    # Newer releases want to be told who may call.
    known = "permission_classes" in ServiceSpec.__dataclass_fields__
    return ServiceSpec(**given, **({"permission_classes": [AllowAny]} if known else {}))
