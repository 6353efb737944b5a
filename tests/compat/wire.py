"""A client that speaks the protocol by hand, over stdio or HTTP, in any revision.

Answers the server's questions, and keeps the messages that came ahead of each answer. Every wait has a limit.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from values import least

MODERN = "2026-07-28"
CLIENT = {"name": "compat", "version": "1"}
CAPABILITIES: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
ROUNDS = 4
ID_STEP = 10
RUN_LIMIT_S = 60.0


class Gone(Exception):
    """The server has ended, or closed the connection."""


@dataclass
class Answer:
    """The answer to one request, and the messages ahead of it."""

    reply: dict[str, Any]
    ahead: list[dict[str, Any]] = field(default_factory=list)

    @property
    def result(self) -> dict[str, Any]:
        found = self.reply.get("result")
        return found if isinstance(found, dict) else {}


class Peer(ABC):
    """A client of one server in one revision."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.last_id = 0
        self.apart: list[dict[str, Any]] = []
        """Messages outside of all requests' streams, or after the answer."""

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN

    def open(self, limit_s: float) -> Answer:
        """Performs the handshake."""
        if self.is_modern:
            return self.ask("server/discover", {}, limit_s)
        params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": CLIENT}
        answer = self.ask("initialize", params, limit_s)
        if "result" in answer.reply:
            self.begin()
        return answer

    def ask(self, method: str, params: dict[str, Any], limit_s: float) -> Answer:
        """Makes one request with all its rounds."""
        ahead: list[dict[str, Any]] = []
        deadline = time.monotonic() + limit_s
        # Rounds don't change the ids of later requests, because servers may include the ids in answers.
        self.last_id += ID_STEP - self.last_id % ID_STEP
        for _ in range(ROUNDS):
            self.last_id += 1
            meta = {"progressToken": self.last_id} if method == "tools/call" else {}
            if self.is_modern:
                meta |= {
                    "io.modelcontextprotocol/protocolVersion": self.revision,
                    "io.modelcontextprotocol/clientInfo": CLIENT,
                    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
                    "io.modelcontextprotocol/logLevel": "debug",
                }
            sent = {**params, "_meta": meta} if meta else params
            message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": sent}
            answer = self.exchange(message, deadline)
            ahead += answer.ahead
            result = answer.result
            if result.get("resultType") != "input_required":
                return Answer(answer.reply, ahead)
            questions = {key: value for key, value in result.items() if key != "_meta"}
            ahead.append({"result": {**questions, "requestState": "requestState" in result}})
            answers = {key: answered(asked) for key, asked in (result.get("inputRequests") or {}).items()}
            params = {**params, "inputResponses": {key: told.get("result") for key, told in answers.items()}}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        return Answer({"rounds": "no end"}, ahead)

    @abstractmethod
    def begin(self) -> None:
        """Notifies the server that the session has begun, and opens the session's streams."""

    @abstractmethod
    def exchange(self, message: dict[str, Any], deadline: float) -> Answer: ...

    @abstractmethod
    def close(self) -> None: ...


class Stdio(Peer):
    def __init__(self, revision: str, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        super().__init__(revision)
        self.stdin = stdin
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, args=(stdout,), daemon=True).start()

    def _read(self, stdout: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in stdout:
                try:
                    told = json.loads(line)
                except ValueError:
                    told = {"method": "no JSON", "params": {"line": line.decode(errors="replace")[:200]}}
                for one in told if isinstance(told, list) else [told]:
                    self.lines.put(one)
        self.lines.put(None)

    def begin(self) -> None:
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        try:
            self.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def exchange(self, message: dict[str, Any], deadline: float) -> Answer:
        self._write(message)
        ahead: list[dict[str, Any]] = []
        while True:
            try:
                told = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return Answer({"timeout": True}, ahead)
            if told is None:
                self.lines.put(None)
                raise Gone
            if "method" in told:
                ahead.append(told)
                if "id" in told:
                    self._write(answered(told))
            elif told.get("id") == message["id"] or told.get("id") is None:
                return Answer(told, ahead)

    def close(self) -> None:
        quiet = time.monotonic() + 0.05
        with contextlib.suppress(queue.Empty):
            while told := self.lines.get(timeout=max(0.0, quiet - time.monotonic())):
                if "method" in told:
                    self.apart.append(told)
        with contextlib.suppress(OSError):
            self.stdin.close()


class Http(Peer):
    def __init__(self, revision: str, port: int, path: str) -> None:
        super().__init__(revision)
        self.port, self.path = port, path
        self.session: str | None = None
        self.standalone: http.client.HTTPConnection | None = None
        self.listens = threading.Event()

    def begin(self) -> None:
        with self._sent("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, {}, 5) as (_, reply):
            reply.read()
        if self.session is not None:
            threading.Thread(target=self._listen, daemon=True).start()
            self.listens.wait(5)

    def _listen(self) -> None:
        failures = (OSError, ValueError, AttributeError, http.client.HTTPException)
        with contextlib.suppress(*failures), self._sent("GET", None, {}, RUN_LIMIT_S) as (connection, reply):
            self.standalone = connection
            self.listens.set()
            if reply.status == 200:
                for told in events(reply):
                    self.apart.append(told)
                    if "id" in told:
                        self._post(answered(told))
        self.listens.set()

    def exchange(self, message: dict[str, Any], deadline: float) -> Answer:
        extra = {}
        params = message["params"]
        if self.is_modern:
            extra["Mcp-Method"] = message["method"]
            name = params.get("name", params.get("uri"))
            if message["method"] in ("tools/call", "prompts/get", "resources/read") and isinstance(name, str):
                extra["Mcp-Name"] = name
        ahead: list[dict[str, Any]] = []
        try:
            with self._sent("POST", message, extra, deadline - time.monotonic()) as (connection, reply):
                self.session = reply.getheader("mcp-session-id") or self.session
                kind = (reply.getheader("content-type") or "").split(";")[0]
                if kind != "text/event-stream":
                    body = reply.read()
                    try:
                        told = json.loads(body)
                    except ValueError:
                        told = {"body": body.decode(errors="replace")[:500]}
                    return Answer({**told, "status": reply.status} if reply.status != 200 else told, ahead)
                for told in events(reply):
                    if connection.sock is not None:
                        connection.sock.settimeout(max(0.01, deadline - time.monotonic()))
                    if told.get("id") == message["id"] and "method" not in told:
                        return Answer(told, ahead)
                    ahead.append(told)
                    if "method" in told and "id" in told:
                        self._post(answered(told))
                return Answer({"stream": "ended"}, ahead)
        except TimeoutError:
            return Answer({"timeout": True}, ahead)
        except ConnectionRefusedError as error:
            raise Gone from error
        except (OSError, http.client.HTTPException) as error:
            return Answer({"connection": type(error).__name__}, ahead)

    def _post(self, message: dict[str, Any]) -> None:
        with self._sent("POST", message, {}, 5) as (_, reply):
            reply.read()

    @contextlib.contextmanager
    def _sent(
        self, method: str, message: dict[str, Any] | None, extra: dict[str, str], limit_s: float
    ) -> Iterator[tuple[http.client.HTTPConnection, http.client.HTTPResponse]]:
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        headers = {"Accept": accept, **extra}
        if message is not None:
            headers["Content-Type"] = "application/json"
        if message is None or message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=max(0.01, limit_s))
        try:
            connection.request(method, self.path, None if message is None else json.dumps(message), headers)
            yield connection, connection.getresponse()
        finally:
            connection.close()

    def close(self) -> None:
        time.sleep(0.05)  # messages of the standalone stream may come after the last answer
        if self.standalone is not None and self.standalone.sock is not None:
            with contextlib.suppress(OSError):
                self.standalone.sock.shutdown(socket.SHUT_RDWR)
        if self.session is not None:
            failures = (OSError, http.client.HTTPException)
            with contextlib.suppress(*failures), self._sent("DELETE", None, {}, 5) as (_, reply):
                reply.read()


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    """The client's answer to a request of the server."""
    method, params = asked.get("method"), asked.get("params") or {}
    if method == "elicitation/create":
        content = least(params.get("requestedSchema") or {}, everything=True)
        result = {"action": "accept"} if params.get("mode") == "url" else {"action": "accept", "content": content}
    elif method == "sampling/createMessage":
        content = {"type": "text", "text": "sampled"}
        result = {"role": "assistant", "content": content, "model": "compat", "stopReason": "endTurn"}
    elif method == "roots/list":
        result = {"roots": [{"uri": "file:///compat", "name": "compat"}]}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "the client has no answer"}
        return {"jsonrpc": "2.0", "id": asked.get("id"), "error": error}
    return {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}


def events(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yields the messages of an event stream."""
    data: list[str] = []
    while line := reply.readline():
        text = line.decode().rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            if any(data):
                yield json.loads("\n".join(data))
            data = []
