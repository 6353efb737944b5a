"""The call of all benchmarks in each revision, and its expected answer."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from subjects import MODERN

EXPECTED = [{"type": "text", "text": "hi"}]


@dataclass(frozen=True)
class Call:
    """A call of a tool in a revision of the protocol, or without a tool the listing of tools."""

    revision: str
    tool: str | None = "echo"
    arguments: tuple[tuple[str, object], ...] = (("text", "hi"),)
    events_only: bool = False


def headers(of: Call) -> dict[str, str]:
    """The headers that the revision requires for the call."""
    common = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream" if of.events_only else "application/json, text/event-stream",
        "MCP-Protocol-Version": of.revision,
    }
    return common | ({"Mcp-Method": "tools/call", "Mcp-Name": of.tool or ""} if of.revision == MODERN else {})


def body(of: Call) -> str:
    """The call's message."""
    revision = of.revision
    params: dict[str, object] = {"name": of.tool, "arguments": dict(of.arguments)} if of.tool else {}
    if revision == MODERN:
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": revision, f"{prefix}/clientCapabilities": {}}
    method = "tools/call" if of.tool else "tools/list"
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":"))


def raw(of: Call, port: int) -> bytes:
    """The whole request in HTTP/1.1."""
    fields = {"Host": f"localhost:{port}", **headers(of), "Content-Length": str(len(body(of)))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n{body(of)}".encode()


def check(port: int, of: Call, mode: str) -> None:
    """Makes the call once and refuses a server that doesn't answer with the text in its mode."""
    answer = once(port, of, mode)
    result = answer.get("result", {})
    if answer.get("id") != 1 or result.get("content") != EXPECTED or "structuredContent" in result:
        raise RuntimeError(f"answered something else: {str(answer)[:500]}")


def once(port: int, of: Call, mode: str) -> dict[str, Any]:
    """Makes the call once and refuses an answer in another mode."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/mcp", body(of), headers(of))
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    kind = (response.getheader("Content-Type") or "").split(";")[0]
    if response.status != 200 or kind != ("text/event-stream" if mode == "sse" else "application/json"):
        raise RuntimeError(f"answered {response.status} {kind}: {text[:500]}")
    if mode == "sse":
        text = next(line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:"))
    answer: dict[str, Any] = json.loads(text)
    return answer
