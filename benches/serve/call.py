"""The one call that everything here makes, in each revision, and what its answer must be."""

from __future__ import annotations

import http.client
import json

from subjects import MODERN

EXPECTED = [{"type": "text", "text": "hi"}]


def headers(revision: str) -> dict[str, str]:
    """What the revision wants to be sent with the call."""
    common = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
    }
    return common | ({"Mcp-Method": "tools/call", "Mcp-Name": "echo"} if revision == MODERN else {})


def body(revision: str) -> str:
    """The call of `echo`."""
    params: dict[str, object] = {"name": "echo", "arguments": {"text": "hi"}}
    if revision == MODERN:
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": revision, f"{prefix}/clientCapabilities": {}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, separators=(",", ":"))


def check(port: int, revision: str, mode: str) -> None:
    """Makes the call once and refuses a server that answers anything but the text, in its mode."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/mcp", body(revision), headers(revision))
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    kind = (response.getheader("Content-Type") or "").split(";")[0]
    if response.status != 200 or kind != ("text/event-stream" if mode == "sse" else "application/json"):
        raise RuntimeError(f"answered {response.status} {kind}: {text[:500]}")
    if mode == "sse":
        text = next(line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:"))
    answer = json.loads(text)
    result = answer.get("result", {})
    if answer.get("id") != 1 or result.get("content") != EXPECTED or "structuredContent" in result:
        raise RuntimeError(f"answered something else: {text[:500]}")
