"""Servers of the compiled core without the Python package, and a minimal client with a kept-alive connection."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from mcpace import _core

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


class Wire:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.headers: dict[str, str] = {}
        self.last = 0

    def send(self, method: str, path: str = "/mcp", body: str | None = None, **headers: str) -> tuple[int, Any, bytes]:
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, {**self.headers, **own})
        reply = self.connection.getresponse()
        return reply.status, reply.headers, reply.read()

    def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        self.begin(method, params, **headers)
        return self.answer()

    def begin(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> int:
        self.last += 1
        body = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.connection.request("POST", "/mcp", json.dumps(body), {**accept, **self.headers, **own})
        return self.last

    def answer(self) -> dict[str, Any]:
        reply = self.connection.getresponse()
        self.reply_headers = reply.headers
        text = reply.read().decode()
        if reply.headers.get_content_type() == "text/event-stream":
            events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
            self.ahead = events[:-1]
            return events[-1]
        return json.loads(text)

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": tool, "arguments": given})
        assert "result" in answer, answer
        return answer["result"]

    def text(self, tool: str, **given: Any) -> str:
        return self.call(tool, **given)["content"][0]["text"]

    def initialize(self, **capabilities: Any) -> None:
        client = {"name": "wire", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
        assert "result" in self.ask("initialize", params)
        session = self.reply_headers["mcp-session-id"]
        self.headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}

    def notify(self, method: str, params: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.connection.request("POST", "/mcp", body, {**accept, **self.headers})
        assert self.connection.getresponse().read() == b""

    def close(self) -> None:
        self.connection.close()


@contextmanager
def serving(made: _core.Server, **options: Any) -> Iterator[Callable[[], Wire]]:
    running = made.serve_http(_core.HttpOptions(**{"port": 0, "stateless": True, **options}))
    wires: list[Wire] = []

    def connect() -> Wire:
        wires.append(Wire(running.port))
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
