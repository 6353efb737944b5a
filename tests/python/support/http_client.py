"""An MCP client over HTTP that implements the protocol by hand.

It is deliberately not an SDK, so that tests see exactly what was sent and received. Every wait has a limit.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any

LEGACY = "2025-11-25"
LIMIT_S = 30
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class HttpClient:
    """One kept-alive connection, and at most one session. Keywords for headers have ``_`` in place of ``-``."""

    def __init__(
        self,
        port: int,
        *,
        path: str = "/mcp",
        revision: str | None = None,
        session: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection("localhost", port, timeout=LIMIT_S, context=tls)
            if tls
            else http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        )
        self.path = path
        self.headers: dict[str, str] = {}
        """Headers of every request."""
        if revision:
            self.headers["MCP-Protocol-Version"] = revision
        if session:
            self.headers["Mcp-Session-Id"] = session
        self.last = 0
        """Id of the last request."""
        self.ahead: list[dict[str, Any]] = []
        """Messages that came before the last reply on its stream."""
        self.reply: http.client.HTTPResponse
        """The last response."""

    @property
    def session(self) -> str | None:
        """Id of the session."""
        return self.headers.get("Mcp-Session-Id")

    def open(
        self, method: str, body: str | None = None, *, path: str | None = None, **headers: str
    ) -> http.client.HTTPResponse:
        """Sends any HTTP request and returns the response, whose body is not read."""
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path or self.path, body, {**self.headers, **own})
        self.reply = self.connection.getresponse()
        return self.reply

    def send(
        self, method: str, path: str | None = None, body: str | None = None, **headers: str
    ) -> tuple[int, Any, bytes]:
        """Sends any HTTP request. Returns status, headers and body."""
        reply = self.open(method, body, path=path, **headers)
        return reply.status, reply.headers, reply.read()

    def listen(self, after: str | None = None) -> http.client.HTTPResponse:
        """Opens the stream of the session, after the event of this id."""
        return self.open("GET", Accept="text/event-stream", **({"Last_Event_ID": after} if after else {}))

    def begin(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> int:
        """Sends a request without waiting for its response, which :meth:`answer` reads. Returns the request's id."""
        self.last += 1
        self._post({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}, headers)
        return self.last

    def post(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> http.client.HTTPResponse:
        """Makes a request and returns the response, whose body is not read."""
        self.begin(method, params, **headers)
        self.reply = self.connection.getresponse()
        return self.reply

    def post_message(self, message: dict[str, Any], **headers: str) -> http.client.HTTPResponse:
        """Sends any JSON-RPC message and returns the response, whose body is not read."""
        self._post(message, headers)
        self.reply = self.connection.getresponse()
        return self.reply

    def exchange(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any, str]:
        """Makes a request. Returns status, headers and body, whatever they are."""
        reply = self.post(method, params, **headers)
        return reply.status, reply.headers, reply.read().decode()

    def answer(self) -> dict[str, Any]:
        """Reads the response of the request begun last. Returns the reply to it."""
        self.reply = self.connection.getresponse()
        *self.ahead, reply = messages(self.reply)
        return reply

    def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        """Makes a request and returns the reply."""
        self.begin(method, params, **headers)
        return self.answer()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Calls a tool and returns the result."""
        reply = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Calls a tool and returns the first block of the result."""
        text: str = self.call(tool, **arguments)["content"][0]["text"]
        return text

    def initialize(self, revision: str = LEGACY, **capabilities: Any) -> dict[str, Any]:
        """Starts a session, if the server has sessions. Returns the server's result."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
        reply = self.ask("initialize", params)
        assert "result" in reply, reply
        self.headers["MCP-Protocol-Version"] = revision
        if session := self.reply.headers["Mcp-Session-Id"]:
            self.headers["Mcp-Session-Id"] = session
        result: dict[str, Any] = reply["result"]
        return result

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Sends a notification."""
        self._post({"jsonrpc": "2.0", "method": method, "params": params or {}}, {})
        assert self.connection.getresponse().read() == b""

    def end_session(self) -> None:
        """Ends the session."""
        status, _, _ = self.send("DELETE")
        assert status < 300, status
        del self.headers["Mcp-Session-Id"]

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("POST", self.path, json.dumps(message), {**_JSON, **self.headers, **own})


def messages(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a body: one of JSON, or those of a stream of events. A reply without a body gives its status."""
    if reply.headers.get_content_type() != "text/event-stream":
        body = reply.read()
        yield json.loads(body) if body else {"status": reply.status}
        return
    for line in reply:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])
    # Reads the last chunk, after which the connection takes another request.
    reply.read()
