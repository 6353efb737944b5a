"""A stand-in for an ASGI server, which handles one request or one lifespan strictly by the specification."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

LIMIT_S = 30
Application = Callable[..., Awaitable[None]]


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test on its own event loop."""

    @functools.wraps(test)
    def run(*words: Any, **named: Any) -> None:
        asyncio.run(test(*words, **named))

    return run


class Reply:
    """Collects a reply from ASGI messages."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.ended = asyncio.Event()
        self.spoke = asyncio.Event()
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        assert not self.ended.is_set(), message
        if message["type"] == "http.response.start":
            assert self.status == 0
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            assert self.status
            self.pieces.append(message.get("body", b""))
            self.spoke.set()
            if not message.get("more_body", False):
                self.ended.set()

    @property
    def body(self) -> str:
        return b"".join(self.pieces).decode()


async def ask(
    app: Application,
    message: Any,
    *,
    path: str = "/mcp",
    root: str = "",
    parts: int = 1,
    method: str = "POST",
    query: str = "",
    **more: str,
) -> Reply:
    reply = Reply()
    await begin(app, reply, message, path=path, root=root, parts=parts, method=method, query=query, **more)
    return reply


async def begin(
    app: Application,
    reply: Reply,
    message: Any,
    *,
    path: str = "/mcp",
    root: str = "",
    parts: int = 1,
    method: str = "POST",
    query: str = "",
    **more: str,
) -> None:
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    body = b"" if message is None else json.dumps(message).encode()
    size = max(1, -(-len(body) // parts))
    pieces = [body[at : at + size] for at in range(0, max(1, len(body)), size)]

    async def receive() -> Any:
        if pieces:
            part = pieces.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(pieces)}
        waiting = [asyncio.ensure_future(one.wait()) for one in (reply.gone, reply.ended)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root + path,
        "raw_path": (root + path).encode(),
        "root_path": root,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    async with asyncio.timeout(LIMIT_S):
        await app(scope, receive, reply.send)


def call(tool: str, **arguments: object) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    }
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta},
    }


def modern(tool: str) -> dict[str, str]:
    return {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": tool}


def text(reply: Reply) -> str:
    return str(json.loads(reply.body)["result"]["content"][0]["text"])


@contextlib.asynccontextmanager
async def run_lifespan(app: Application) -> AsyncIterator[list[str]]:
    """Runs the lifespan of an application around the block. Yields the application's answers."""
    said: list[str] = []
    answered = asyncio.Event()
    ending = asyncio.Event()
    asked = ["lifespan.startup"]

    async def receive() -> Any:
        if asked:
            return {"type": asked.pop()}
        await ending.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Any) -> None:
        said.append(message["type"] + message.get("message", ""))
        answered.set()

    async with asyncio.timeout(LIMIT_S):
        living = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
        await answered.wait()
        yield said
        ending.set()
        await living
