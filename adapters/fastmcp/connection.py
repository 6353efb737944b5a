"""FastMCP's client: `fastmcp.Client`, 2.6 to 4.x."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import consent
import fastmcp
from fastmcp.client import transports
from fastmcp.exceptions import ToolError

import driving
from driving import SessionOpener, Unsupported, call_summary, given, listing, server_summary


class Driver(driving.Driver):
    """Sessions of FastMCP."""

    def __init__(self, home: Path) -> None:
        super().__init__("fastmcp", consent.Wallet(home))

    def session_opener(self, command: dict[str, Any]) -> SessionOpener:
        options = given(mode=self.mode(command.get("mode")))
        if command.get("command"):
            program, *arguments = command["command"]
            # By default it keeps a server running for its next session, whereas the contract's `disconnect` ends the
            # server.
            stdio = {"command": program, "args": arguments, "env": command.get("env"), "keep_alive": False}
            return opener(lambda: fastmcp.Client(transports.StdioTransport(**stdio), **options))
        token, provider = self.authorization(command)
        options |= given(auth=token or provider)
        return opener(lambda: fastmcp.Client(command["url"], **options))

    def mode(self, asked: str | None) -> str | None:
        if asked is None or "mode" in inspect.signature(fastmcp.Client.__init__).parameters:
            return asked
        if asked != "legacy":
            raise Unsupported(f"mode {asked!r} needs FastMCP 4: this release only knows the initialize handshake")
        return None

    async def call_session(self, session: Any, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return await session.call_tool(name, arguments)
        except ToolError as error:
            return error

    def listed(self, reply: Any) -> dict[str, Any]:
        """The contract's summary of a list. FastMCP's client requests all pages itself."""
        return listing(reply)

    def called(self, reply: Any) -> dict[str, Any]:
        if isinstance(reply, ToolError):
            return {"is_error": True, "text": str(reply)[: driving.TEXT_LIMIT]}
        return call_summary(Blocks(reply) if isinstance(reply, list) else reply)


class Blocks:
    """Result of a call in the first releases, which returned only the content."""

    is_error = False

    def __init__(self, content: list[Any]) -> None:
        self.content = content


def opener(client: Callable[[], Any]) -> SessionOpener:
    return lambda: opened(client())


@contextlib.asynccontextmanager
async def opened(client: Any) -> AsyncIterator[tuple[Any, Callable[[], dict[str, Any]]]]:
    async with client:
        yield client, lambda: described(client)


def described(client: Any) -> dict[str, Any]:
    if hasattr(client, "protocol_version"):
        return server_summary(client.protocol_version, client.server_info)
    reply = client.initialize_result
    return server_summary(reply.protocolVersion, reply.serverInfo)
