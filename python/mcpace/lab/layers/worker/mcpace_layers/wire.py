"""Minimal client over one kept-alive connection, which sends prepared requests and reads whole replies.

Design constraint: The client is equal for all SDKs and does as little as HTTP/1.1 and MCP allow, so that differences
come from the servers. Replies are read by their framing (length or chunks) and checked for errors.
"""

from __future__ import annotations

import json
import select
import socket
from typing import Any
from urllib.parse import urlsplit

from mcpace_layers.problem import SETUP, Problem, Unmeasured

REVISION = "2025-06-18"
TIMING = "dev.mcpace/timing"
CALL = 2
"""JSON-RPC id of every call: calls are sequential."""
LIMIT_S = 30.0
LONGEST_REPLY = 64 * 1024 * 1024
PIECE = 1 << 16


class Wire:
    """A session with a server. Methods raise :class:`Problem` for every failure."""

    def __init__(self, url: str, tool: str, arguments: dict[str, Any]) -> None:
        self._parts = urlsplit(url)
        self._path = self._parts.path or "/"
        self._tool = tool
        self._socket = self._connect()
        self._session: list[str] = []
        self._handshake()
        call = {"name": tool, "arguments": arguments}
        self._call = self._request(_message(CALL, "tools/call", call))
        self._timing_call = self._request(_message(CALL, "tools/call", {**call, "_meta": {TIMING: True}}))

    def renew(self) -> None:
        """Opens a new connection if the server has closed the idle one."""
        # Between two calls, a readable socket means that the server has closed the connection.
        if select.select([self._socket], [], [], 0)[0]:
            self._socket.close()
            self._socket = self._connect()

    def call(self) -> bytes:
        """Makes a call and returns the reply's body."""
        return self._exchange(self._call)

    def timed_call(self) -> int:
        """Makes a call that requests layer timings; nanoseconds of dispatch and service by the server's clocks."""
        reply = self._exchange(self._timing_call)
        self.check(reply)
        told = self._message(reply)["result"].get("_meta", {}).get(TIMING)
        if told is None:
            raise Unmeasured("the server tells no layers")
        return int(told["dispatch_ns"]) + int(told["service_ns"])

    def check(self, reply: bytes) -> None:
        """Raises :class:`Problem` unless the reply is a successful result."""
        message = self._message(reply)
        if "error" in message:
            raise Problem(SETUP, f"the server answered with an error: {json.dumps(message['error'])[:300]}")
        result = message.get("result")
        if not isinstance(result, dict) or message.get("id") != CALL:
            raise Problem(SETUP, f"the server's answer is no result: {json.dumps(message)[:300]}")
        if result.get("isError"):
            raise Problem(SETUP, f"the tool {self._tool!r} failed: {json.dumps(result.get('content'))[:300]}")

    def _connect(self) -> socket.socket:
        try:
            made = socket.create_connection((self._parts.hostname or "127.0.0.1", self._parts.port or 80), LIMIT_S)
        except OSError as error:
            raise Problem(SETUP, f"the served server can't be reached: {error.strerror or error}") from error
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _handshake(self) -> None:
        client = {"name": "mcpace-layers", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        hello = _message(1, "initialize", params)
        reply = self._message(self._exchange(self._request(hello), greets=True) or self._exchange(self._request(hello)))
        if "result" not in reply:
            raise Problem(SETUP, f"initialize was answered with an error: {json.dumps(reply.get('error'))[:300]}")
        agreed = str(reply["result"].get("protocolVersion", REVISION))
        self._session.append(f"mcp-protocol-version: {agreed}\r\n")
        self._exchange(self._request({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def _request(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message, separators=(",", ":")).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nhost: {self._parts.netloc}\r\nuser-agent: mcpace-layers\r\n"
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            f"{''.join(self._session)}content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _exchange(self, request: bytes, greets: bool = False) -> bytes:
        """Sends a request and returns the reply's body. The first reply may start a session.

        With ``greets``, a redirect changes the path, and the returned body is empty.
        """
        try:
            self._socket.sendall(request)
            head, body = self._reply()
        except TimeoutError:
            raise Problem(SETUP, f"the served server gave no answer within {LIMIT_S:g} s") from None
        except OSError as error:
            raise Problem(SETUP, f"the connection to the served server broke: {error.strerror or error}") from error
        status = head[9:12]
        if greets and status in (b"307", b"308"):
            self._path = urlsplit((_field(head, b"location") or b"").decode("latin-1")).path or "/"
            return b""
        if status[:1] != b"2":
            told = body[:300].decode("utf-8", "replace").strip()
            raise Problem(SETUP, f"the served server answered HTTP {status.decode('ascii', 'replace')}: {told}")
        given = _field(head, b"mcp-session-id")
        if given is not None and not self._session:
            self._session.append(f"mcp-session-id: {given.decode('latin-1')}\r\n")
        return body

    def _reply(self) -> tuple[bytes, bytes]:
        """Reads one reply: its head, and its body with chunks joined."""
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more(received)
        head, rest = received[: end + 2], received[end + 4 :]
        length = _field(head, b"content-length")
        if length is not None:
            if not length.isdigit() or int(length) > LONGEST_REPLY:
                raise Problem(SETUP, "the served server's reply has no sensible length")
            while len(rest) < int(length):
                rest += self._more(rest)
            return head, rest
        if b"chunked" in (_field(head, b"transfer-encoding") or b"").lower():
            # A chunk's data may end like the last chunk, so this ending only triggers the full check.
            while not rest.endswith(b"\r\n\r\n") or (body := _join_chunks(rest)) is None:
                rest += self._more(rest)
            return head, body
        if head[9:12] in (b"202", b"204"):
            return head, b""
        raise Problem(SETUP, "the served server's reply ends with its connection: it keeps none alive to measure on")

    def _more(self, received: bytes) -> bytes:
        piece = self._socket.recv(PIECE)
        if not piece:
            raise Problem(SETUP, "the served server closed the connection in the middle of a reply")
        if len(received) > LONGEST_REPLY:
            raise Problem(SETUP, f"the served server's reply is longer than {LONGEST_REPLY} bytes")
        return piece

    @staticmethod
    def _message(body: bytes) -> dict[str, Any]:
        """Parses the message of a JSON reply, or the last message of an event stream."""
        text = body.decode("utf-8", "replace")
        if not text.lstrip().startswith("{"):
            data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            text = next((one for one in reversed(data) if one), "")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise Problem(SETUP, f"the served server's answer is no message: {body[:200]!r}")
        return message


def _message(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _field(head: bytes, name: bytes) -> bytes | None:
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    return head[start : head.find(b"\r\n", start)].strip()


def _join_chunks(chunks: bytes) -> bytes | None:
    """Joins the data of chunks; ``None`` while the last chunk is missing (RFC 9112 §7.1)."""
    parts, at = [], 0
    while (end := chunks.find(b"\r\n", at)) >= 0:
        try:
            size = int(chunks[at:end].split(b";")[0], 16)
        except ValueError:
            size = -1
        if size < 0:
            raise Problem(SETUP, "the served server's chunks are no HTTP")
        if size == 0:
            # An empty line follows the last chunk's line and the optional trailers.
            return b"".join(parts) if chunks.find(b"\r\n\r\n", end) >= 0 else None
        at, start = end + 4 + size, end + 2
        if len(chunks) < at:
            return None
        parts.append(chunks[start : start + size])
    return None
