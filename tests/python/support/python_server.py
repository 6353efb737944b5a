"""A server of the Python package on its own port, and a client that answers the server's questions."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpace import MCPServer, _core
from mcpace.server.running.lifespans import RunningLifespan
from support.http_client import LEGACY, HttpClient, messages

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
NAMED = ("tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel")
"""Methods whose object is named in a header."""


@contextlib.contextmanager
def served(server: MCPServer[Any], **options: Any) -> Iterator[int]:
    """Serves during the ``with`` block and yields the port."""
    prepared = server.__mcpace__()
    with RunningLifespan(prepared):
        running = prepared.core.serve_http(_core.HttpOptions(**{"port": 0} | dict(prepared.options) | options))
        try:
            yield running.port
        finally:
            running.stop()


@dataclass
class Client:
    """Sends each request on its own connection."""

    port: int
    era: str = "modern"
    capabilities: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    heard: list[dict[str, Any]] = field(default_factory=list)
    """Notifications, as they came."""
    answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    """To the server's questions, by method."""
    session: str | None = None
    status: int = 0
    """Status of the last response."""

    def request(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Makes a request and returns the reply. Answers the server's requests, in this stream or in further rounds."""
        reply = self.once(method, dict(params or {}), meta)
        rounds = 0
        while self.era == "modern" and reply.get("result", {}).get("resultType") == "input_required":
            assert (rounds := rounds + 1) < 6, "the rounds don't end"
            result = reply["result"]
            answers = {key: self.answer(question) for key, question in result.get("inputRequests", {}).items()}
            more = {"inputResponses": answers, "requestState": result.get("requestState")}
            reply = self.once(method, {**(params or {}), **more}, meta)
        return reply

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Calls a tool and returns the result."""
        reply = self.request("tools/call", {"name": tool, "arguments": arguments})
        return reply.get("result", reply)

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Calls a tool and returns the first block of the result."""
        result = self.call(tool, **arguments)
        text: str = result["content"][0]["text"]
        return text

    def begin(self) -> None:
        """Starts a session of a legacy revision."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": info}
        self.era = "legacy"
        reply = self.once("initialize", params, {})
        assert "result" in reply, reply
        self.notify("notifications/initialized")

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Sends a notification."""
        self.post({"jsonrpc": "2.0", "method": method, "params": params or {}}).read()

    def once(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        """Makes one request without the following rounds."""
        if self.era == "modern":
            meta = {
                PREFIX + "protocolVersion": MODERN,
                PREFIX + "clientInfo": {"name": "test", "version": "1"},
                PREFIX + "clientCapabilities": self.capabilities,
                **meta,
            }
        if meta:
            params["_meta"] = meta
        response = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        for message in messages(response):
            if "method" not in message:
                return message
            if "id" in message:
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": self.answer(message)}
                self.post(reply).read()
            else:
                self.heard.append(message)
        raise AssertionError(f"no reply: {response.status}")

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        return self.answers[question["method"]](question.get("params") or {})

    def post(self, message: dict[str, Any]) -> http.client.HTTPResponse:
        """Sends a message on a connection of its own and returns the response, whose body is not read."""
        connection = HttpClient(self.port, revision=MODERN if self.era == "modern" else LEGACY, session=self.session)
        connection.headers |= self.headers
        headers = {}
        if self.era == "modern" and "method" in message:
            headers["Mcp_Method"] = message["method"]
            name = message["params"].get("name") or message["params"].get("uri") or message["params"].get("taskId")
            if name and message["method"] in NAMED:
                headers["Mcp_Name"] = name
        response = connection.post_message(message, **headers)
        self.status = response.status
        self.session = response.headers.get("Mcp-Session-Id") or self.session
        return response
