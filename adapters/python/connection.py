"""The official Python SDK as a client: `connect` by its transports and sessions, of 1.x and of 2.x."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import mcp
from mcp.client import streamable_http

import authorization
import driving
from driving import Hear, SessionOpener, Unsupported, given, server_summary

# The SDK's own defaults, stated because a client with headers or authorization has to be built by the caller.
HTTP_TIMEOUT_S = 30.0
HTTP_READ_TIMEOUT_S = 300.0


class Driver(driving.Driver):
    """Sessions of the official SDK."""

    def __init__(self) -> None:
        super().__init__("mcp", authorization.Wallet())

    async def call_with_progress(self, session: Any, name: str, arguments: dict[str, Any], hear: Hear) -> Any:
        """Calls a tool and asks for its progress."""
        if "progress_callback" not in inspect.signature(session.call_tool).parameters:
            raise Unsupported("this release takes no callback for progress")
        return await session.call_tool(name, arguments, progress_callback=hear)

    def session_opener(self, command: dict[str, Any]) -> SessionOpener:
        """Chooses how to open a session. It may build a provider, so it runs before the clock starts."""
        mode = command.get("mode")
        if command.get("command"):
            program, *arguments = command["command"]
            server = mcp.StdioServerParameters(command=program, args=arguments, env=command.get("env"))
            return opener(lambda: mcp.stdio_client(server), None, mode)
        token, provider = self.authorization(command)
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        plain_url = command["url"] if headers is None and provider is None else None
        return opener(lambda: http_transport(command["url"], headers, provider), plain_url, mode)


def opener(transport: Callable[[], Any], plain_url: str | None, mode: str | None) -> SessionOpener:
    client_class = getattr(mcp, "Client", None)
    if client_class is not None:
        options = {} if mode is None else {"mode": mode}
        return lambda: open_client(client_class, plain_url or transport, options)
    if mode not in (None, "legacy"):
        raise Unsupported(f"mode {mode!r} needs mcp 2: this release only knows the initialize handshake")
    return lambda: open_session(transport)


@contextlib.asynccontextmanager
async def open_session(transport: Callable[[], Any]) -> AsyncIterator[tuple[Any, Callable[[], dict[str, Any]]]]:
    """Opens a session of mcp 1.x: the transport, a ClientSession on its streams, initialize."""
    async with transport() as (read, write, *_), mcp.ClientSession(read, write) as session:
        reply = await session.initialize()
        yield session, lambda: server_summary(reply.protocolVersion, reply.serverInfo)


@contextlib.asynccontextmanager
async def open_client(
    client_class: Any, target: Any, options: dict[str, Any]
) -> AsyncIterator[tuple[Any, Callable[[], dict[str, Any]]]]:
    """Opens a session of mcp 2.x, whose Client handles transport and handshake. `target` is a URL or makes a
    transport."""
    async with client_class(target if isinstance(target, str) else target(), **options) as client:
        yield client, lambda: server_summary(client.protocol_version, client.server_info)


def http_transport(url: str, headers: dict[str, str] | None, provider: Any) -> Any:
    modern = getattr(streamable_http, "streamable_http_client", None)
    if modern is None:
        return streamable_http.streamablehttp_client(url, **given(headers=headers, auth=provider))
    if headers is None and provider is None:
        return modern(url)
    return configured_transport(modern, url, headers, provider)


@contextlib.asynccontextmanager
async def configured_transport(
    modern: Any, url: str, headers: dict[str, str] | None, provider: Any
) -> AsyncIterator[Any]:
    """Newer releases take headers and authorization from an HTTP client of the caller's."""
    httpx = getattr(streamable_http, "httpx2", None) or streamable_http.httpx
    timeout = httpx.Timeout(HTTP_TIMEOUT_S, read=HTTP_READ_TIMEOUT_S)
    client = httpx.AsyncClient(timeout=timeout, **given(headers=headers, auth=provider))
    async with client, modern(url, http_client=client) as streams:
        yield streams
