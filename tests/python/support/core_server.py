"""Servers of the compiled core without the Python package, and a minimal client with a kept-alive connection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from mcpace import _core
from support.http_client import HttpClient

LIMIT_S = 20
"""Time limit of every wait."""


def arguments(**fields: Any) -> Callable[[bytes], dict[str, Any]]:
    shape = {name: core_schema.typed_dict_field(schema) for name, schema in fields.items()}
    return SchemaValidator(core_schema.typed_dict_schema(shape)).validate_json


TEXT = arguments(text=core_schema.str_schema())
NOTHING = arguments()


def listed(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}, **more}).encode()


def server(**tools: _core.Handler) -> _core.Server:
    made = _core.Server("test", "1")
    for name, handler in tools.items():
        made.add_tool(listed(name), handler)
    return made


@contextmanager
def serving(made: _core.Server, **options: Any) -> Iterator[Callable[[], HttpClient]]:
    running = made.serve_http(_core.HttpOptions(**{"port": 0, "stateless": True, **options}))
    wires: list[HttpClient] = []

    def connect() -> HttpClient:
        wires.append(HttpClient(running.port))
        return wires[-1]

    try:
        yield connect
    finally:
        for wire in wires:
            wire.close()
        running.stop()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"


def sync(function: Callable[..., Any], **how: Any) -> _core.Handler:
    return _core.Handler(function, **{"output": "text", **how})


def coroutine(function: Callable[..., Any], **how: Any) -> _core.Handler:
    return _core.Handler(function, **{"kind": "async", "output": "text", **how})
