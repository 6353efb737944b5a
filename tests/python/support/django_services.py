"""A Django server with one service, and the errors that a model gets from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.django_project import server

# isort: split
from rest_framework_services import ServiceSpec

from mcpace.django import MCPServer
from mcpace.server.errors import ToolError


def double(*, n: int) -> dict[str, int]:
    return {"doubled": 2 * n}


def service(function: Any, name: str = "t", *, of: MCPServer | None = None, **options: Any) -> MCPServer:
    """Builds a server with one service. Options go to the service's spec where it has them."""
    fields = ServiceSpec.__dataclass_fields__
    spec = {key: options.pop(key) for key in list(options) if key in fields}
    made = of or server()
    made.register_service_tool(
        name=name, spec=ServiceSpec(service=function, **{"permission_classes": []} | spec), **options
    )
    return made


def refused(made: MCPServer, arguments: dict[str, Any] | None = None, **on: Any) -> dict[str, Any]:
    """The error that the model gets for a refused call."""
    with pytest.raises(ToolError) as raised:
        made.call_tool("t", arguments or {}, **on)
    return json.loads(str(raised.value))["error"]
