"""A dialogue with a server over HTTP, message by message, so that the dialogues of two servers can be compared.

The protocol is implemented by hand, since a client library would hide differences. Values that a server chooses freely
(ids of its own requests, session ids, sealed states) are replaced by placeholders.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LIMIT_S = 20
MODERN = "2026-07-28"

# Capabilities that the client declares.
CAPABILITIES = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
CLIENT = {"name": "dialogue", "version": "1"}


@dataclass
class Peer:
    """A client of one server in one revision."""

    port: int
    revision: str
    path: str = "/mcp"
    headers: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    last_id: int = 0
    answers: dict[str, Any] = field(default_factory=dict)
    """To what the server asks on its standalone stream."""
    apart: list[dict[str, Any]] = field(default_factory=list)
    """Messages of the standalone stream that haven't been read yet."""
    heard: threading.Condition = field(default_factory=threading.Condition)
    """Notified of each message on the standalone stream."""
    standalone: Exchange | None = None

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    def open(self) -> dict[str, Any]:
        """Initializes the session and returns the server's answer."""
        if self.modern:
            return self.ask({"method": "server/discover"})
        params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": CLIENT}
        told = self.ask({"method": "initialize", "params": params})
        self.notify("notifications/initialized")
        return told

    def listen(self) -> None:
        """Opens the standalone stream of a session, and answers the server's requests on it."""
        self.standalone = self._sent("GET", None, {})
        reply = self.standalone.__enter__()
        assert reply.status == 200, reply.status
        threading.Thread(target=self._hear, args=(reply,), daemon=True).start()

    def _hear(self, reply: http.client.HTTPResponse) -> None:
        try:
            for told in events(reply):
                # Kept first: the answer lets the server go on.
                with self.heard:
                    self.apart.append({**told, "id": "its own"} if "id" in told else told)
                    self.heard.notify_all()
                if "id" in told:
                    self._answer(told["id"], self.answers.get(told["method"]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            # Closed by `close`, or by the server's end: what was missed shows in the dialogue.
            return

    def close(self) -> None:
        if self.standalone is not None:
            self.standalone.__exit__()
        if self.session is not None:
            with self._sent("DELETE", None, {}) as reply:
                reply.read()

    def catch_up(self, told: dict[str, Any], count: int) -> None:
        """Waits until ``count`` messages have arrived, since messages of another stream may arrive after the answer."""
        with self.heard:
            self.heard.wait_for(lambda: len(told["ahead"]) + len(self.apart) >= count, LIMIT_S)
            apart, self.apart = self.apart, []
        told["ahead"] += apart

    def notify(self, method: str) -> None:
        with self._sent("POST", {"jsonrpc": "2.0", "method": method}, {}) as reply:
            reply.read()
            assert reply.status == 202, reply.status

    def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        """Makes one request with all of its rounds. Returns the status, earlier messages, and the answer."""
        answers = line.get("answers", {})
        self.answers = answers
        params = dict(line["params"]) if "params" in line else None
        ahead: list[dict[str, Any]] = []
        for _ in range(4):
            status, messages = self._exchange(line["method"], params, answers)
            *before, last = messages or [{}]
            # Which of its streams a server uses is its own affair.
            apart, self.apart = self.apart, []
            ahead += before + apart
            result = last.get("result") or {}
            if result.get("resultType") != "input_required":
                return {"status": status, "ahead": ahead, "answer": last}
            # The client asks again, with the answers.
            ahead.append({**result, "requestState": "requestState" in result})
            params = {**(params or {}), "inputResponses": {}}
            for key, question in (result.get("inputRequests") or {}).items():
                params["inputResponses"][key] = answers.get(question["method"])
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        return {"status": status, "ahead": ahead, "answer": "no end of rounds"}

    def _exchange(
        self, method: str, params: dict[str, Any] | None, answers: dict[str, Any]
    ) -> tuple[int, list[dict[str, Any]]]:
        self.last_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        extra = {}
        if self.modern:
            meta = {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
                "io.modelcontextprotocol/logLevel": "debug",
            }
            params = {**(params or {})}
            params["_meta"] = {**meta, **params.get("_meta", {})}
            extra["Mcp-Method"] = method
            name = params.get("name", params.get("uri"))
            if method in ("tools/call", "prompts/get", "resources/read") and isinstance(name, str):
                extra["Mcp-Name"] = name
        if params is not None:
            message["params"] = params
        with self._sent("POST", message, extra) as reply:
            self.session = reply.getheader("mcp-session-id") or self.session
            content_type = (reply.getheader("content-type") or "").split(";")[0]
            if content_type != "text/event-stream":
                body = reply.read()
                told = json.loads(body) if content_type == "application/json" and body else {"body": body.decode()}
                return reply.status, [told]
            messages = []
            for told in events(reply):
                if "id" in told and "method" in told:
                    self._answer(told["id"], answers.get(told["method"]))
                    # The server chose it.
                    told["id"] = "its own"
                messages.append(told)
                if told.get("id") == self.last_id and "method" not in told:
                    break
            return reply.status, messages

    def _answer(self, asked: Any, answer: Any) -> None:
        refused = {"error": {"code": -1, "message": "the client has no answer"}}
        message = {"jsonrpc": "2.0", "id": asked, **({"result": answer} if answer is not None else refused)}
        with self._sent("POST", message, {}) as reply:
            reply.read()

    def _sent(self, method: str, message: dict[str, Any] | None, extra: dict[str, str]) -> Exchange:
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        headers = {"Accept": accept, "X-Example": "an example", **self.headers, **extra}
        if message is not None:
            headers["Content-Type"] = "application/json"
        if message is None or message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        body = None if message is None else json.dumps(message)
        return Exchange(self.port, method, self.path, body, headers)


class Exchange:
    """One request on its own connection, which is closed at the end, even if the reply never ends."""

    def __init__(self, port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.connection.request(method, path, body=body, headers=headers)

    def __enter__(self) -> http.client.HTTPResponse:
        return self.connection.getresponse()

    def __exit__(self, *_: object) -> None:
        # A close alone waits for a thread that reads the reply; the shutdown ends its read.
        if self.connection.sock is not None:
            with contextlib.suppress(OSError):
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def events(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yields the messages of an event stream as they arrive."""
    data: list[str] = []
    while line := reply.readline():
        text = line.decode().rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            if any(data):
                yield json.loads("\n".join(data))
            data = []
