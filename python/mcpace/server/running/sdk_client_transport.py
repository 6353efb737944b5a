"""The transport of ``async with mcp.Client(server) as client``, the official SDK's client, in tests.

The SDK's own HTTP client talks to the server's endpoint within the process, without a socket. ``mcpace.Client`` and
``mcpace.testing`` need no SDK.

Design constraint: imports the SDK only when its client connects. The checks of the HTTP transport (tokens, hosts) do
not apply, as in the SDK's own connection in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcpace.server.running.embedded_endpoint import EmbeddedEndpoint, StartedEndpoint
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings

if TYPE_CHECKING:
    from mcpace.server.app import MCPServer

_URL = "http://localhost/mcp"


@asynccontextmanager
async def connected(server: MCPServer[Any]) -> AsyncIterator[tuple[Any, Any]]:
    """The read stream and the write stream of a client of the server. The lifespan runs within the block."""
    try:
        streamable_http: Any = import_module("mcp.client.streamable_http")
    except ImportError as error:
        raise RuntimeError(
            "only a client of the official SDK enters a server (mcp.Client(server)), and mcp is not installed; "
            "mcpace.Client(server) connects to a server in this process without it"
        ) from error
    http: Any = getattr(streamable_http, "httpx2", None) or streamable_http.httpx
    hosted = EmbeddedEndpoint(lambda: _without_checks(server.__mcpace__()), Settings())
    begun = await hosted.begin_on_loop()
    try:
        client = http.AsyncClient(transport=_transport(http, begun), timeout=None)
        async with (
            client,
            streamable_http.streamable_http_client(_URL, http_client=client) as streams,
        ):
            yield streams[0], streams[1]
    finally:
        await asyncio.to_thread(hosted.end)


class LowLevel:
    """``mcp._mcp_server`` of mcp 1.x, for tests that connect a ``ClientSession`` to it. It has no other member."""

    def __init__(self, server: MCPServer[Any]) -> None:
        self._server = server

    def create_initialization_options(self) -> None:
        """Returns nothing: the server has its own options."""

    async def run(self, read_stream: Any, write_stream: Any, *options: Any, **more: Any) -> None:
        """Serves the client at the other end of the streams until it disconnects."""
        del options, more
        async with connected(self._server) as (from_server, to_server):
            passing = [
                asyncio.ensure_future(_forward_messages(read_stream, to_server)),
                asyncio.ensure_future(_forward_messages(from_server, write_stream)),
            ]
            try:
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in passing:
                    one.cancel()
                await asyncio.gather(*passing, return_exceptions=True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"_mcp_server.{name}: mcpace has no low-level server; serve this one unchanged with mcpace serve (adopt.md)"
        )


async def _forward_messages(source: Any, target: Any) -> None:
    async for message in source:
        await target.send(message)


def _without_checks(prepared: Prepared) -> Prepared:
    """The server without the checks of the HTTP transport: an endpoint without a socket has no other clients."""
    return replace(prepared, options=_unchecked_options(prepared.options), loopback_only=None)


def _unchecked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    guards = ("token_verifier", "resource", "authorization_servers", "required_scopes", "check_resource", "asgi")
    return {name: value for name, value in options.items() if name not in guards}


def _transport(http: Any, begun: StartedEndpoint) -> Any:
    """A transport of the SDK's HTTP library that passes requests to the endpoint."""

    class Body(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, reply: Any) -> None:
            self._reply = reply

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while (piece := await self._reply.next()) is not None:
                yield piece

        async def aclose(self) -> None:
            await self._reply.close()

    class InProcess(http.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            target = request.url.raw_path.decode()
            reply = await begun.endpoint.call(request.method, target, list(request.headers.raw), body)
            return http.Response(reply.status, headers=reply.headers, stream=Body(reply))

    return InProcess()
