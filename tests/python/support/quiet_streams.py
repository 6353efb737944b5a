"""Standalone streams without messages, held by clients of real releases.

A stream that ends was ended because of its age.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.clients.client_program import ClientProgram
from mcpace.lab.environments import environment as release_environment
from support.finding_scenes import (
    Receive,
    Recorded,
    Scope,
    Send,
    body,
    findings_by_code,
    head,
    reply,
    serve_app,
    start_recorder,
)

CLIENTS = 3
"""As many ends as are no chance."""
FIVE_MINUTES_S = 300
LIMIT_S = 30
"""Time limit of every wait except for the end of the streams."""
GREET = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class Quiet:
    """A server with sessions that sends at most a comment now and then on its standalone streams."""

    def __init__(self, comments_s: float | None) -> None:
        self.comments_s = comments_s
        self.sessions = 0
        self.begun = threading.Semaphore(0)
        """Released for each stream that stands,"""
        self.ended = threading.Semaphore(0)
        """and for each whose client has left."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["method"]:
            case "GET":
                await self.stream(receive, send)
            case "DELETE":
                await reply(send, 200, b"", "text/plain")
            case _:
                await self.answer(json.loads(await body(receive)), send)

    async def stream(self, receive: Receive, send: Send) -> None:
        await head(send, 200, "text/event-stream")
        # uvicorn keeps the head until there is something to send with it.
        await comment(send)
        self.begun.release()
        left = asyncio.ensure_future(disconnected(receive))
        while not left.done():
            await asyncio.wait([left], timeout=self.comments_s)
            if not left.done():
                await comment(send)
        self.ended.release()

    async def answer(self, asked: dict[str, Any], send: Send) -> None:
        if "id" not in asked:
            await reply(send, 202, b"", "text/plain")
            return
        more: tuple[tuple[bytes, bytes], ...] = ()
        result: dict[str, Any] = {"content": [{"type": "text", "text": "hello"}]}
        if asked["method"] == "initialize":
            self.sessions += 1
            more = ((b"mcp-session-id", b"s%d" % self.sessions),)
            server, revision = {"name": "quiet", "version": "1"}, asked["params"]["protocolVersion"]
            result = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
        elif asked["method"] == "tools/list":
            result = {"tools": [GREET]}
        await head(send, 200, "application/json", *more)
        content = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        await send({"type": "http.response.body", "body": content.encode()})


async def comment(send: Send) -> None:
    await send({"type": "http.response.body", "body": b": nothing new\n\n", "more_body": True})


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass
class Held:
    """The clients of a release at their own server."""

    server: Quiet
    record: Recorded
    programs: list[ClientProgram]

    def connect(self, program: ClientProgram) -> None:
        words = {"cmd": "connect", "url": self.record.recorder.url, "auth": {"kind": "none"}, "timeout_s": LIMIT_S}
        answer = program.send_command(words, LIMIT_S)
        assert answer.ok, answer
        assert self.server.begun.acquire(timeout=LIMIT_S)

    def until_all_have_ended(self) -> None:
        for _ in self.programs:
            assert self.server.ended.acquire(timeout=FIVE_MINUTES_S + LIMIT_S)

    def stand(self) -> bool:
        return not self.server.ended.acquire(blocking=False)

    def findings(self) -> dict[str, dict[str, Any]]:
        """Findings after each client has continued its session."""
        for program in self.programs:
            answer = program.send_command({"cmd": "call_tool", "name": "greet", "arguments": {}}, LIMIT_S)
            assert answer.ok, answer
        return findings_by_code(self.record.recorder.recording())


@contextmanager
def hold_streams(subject: str, comments_s: float | None = None) -> Iterator[Held]:
    """Opens standalone streams of a release's clients, one for each client."""
    resolved = adapter_subject.resolve_subject(subject)
    environment = release_environment.ensure_environment(resolved.adapter, resolved.version)
    command = resolved.adapter.client_command(environment)
    with ExitStack() as stack:
        server = Quiet(comments_s)
        clients = Held(server, stack.enter_context(start_recorder(stack.enter_context(serve_app(server)))), [])
        for _ in range(CLIENTS):
            clients.programs.append(program := ClientProgram.start(command, environment=environment))
            stack.callback(program.close)
            clients.connect(program)
        yield clients
