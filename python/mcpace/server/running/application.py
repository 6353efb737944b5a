"""The ASGI 3 application that ``server.asgi()`` returns, to be mounted in another application or run by an ASGI server.

It may be mounted under any path: the endpoint is at the mount's own root and at its ``path``. The runtime answers
requests without a socket in between. The author's functions, including those of custom routes, run on the runtime's
threads and event loop, never on the host's.

The lifespan is entered at the host's startup event, or before the first request, since hosts send mounted applications
no such event. It is left at the host's shutdown event, or when the process ends.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcpace.server.errors import logger
from mcpace.server.running import tracebacks
from mcpace.server.running.addresses import is_loopback
from mcpace.server.running.embedded_endpoint import NOT_YET, EmbeddedEndpoint, StartedEndpoint
from mcpace.server.running.errors import AuthorProblem, SetupProblem
from mcpace.server.running.host_policy import HostPolicy
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT = 4 << 20
"""Default limit of a request's body, in bytes."""
SSE_PATH, MESSAGES_PATH = "/sse", "/messages"
"""The runtime's paths of the HTTP+SSE transport of 2024-11-05."""
METADATA_PATH = "/.well-known/oauth-protected-resource"
"""The path of the metadata that clients need to get a token (RFC 9728)."""


class Application:
    """An ASGI application that serves one server. ``make`` is called once, before the lifespan is entered."""

    def __init__(self, make: Callable[[], Prepared], settings: Settings, policy: HostPolicy | None = None) -> None:
        self._hosted = EmbeddedEndpoint(make, settings)
        self._settings = settings
        self._policy = policy
        self._body_limit = settings.max_body or BODY_LIMIT

    @property
    def path(self) -> str:
        """The endpoint's own path."""
        return self._settings.path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self.answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            raise ValueError(f"no ASGI scope that an MCP server knows: {scope['type']!r}")

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._hosted.begin_on_loop()
                except AuthorProblem as problem:
                    await send(
                        {"type": "lifespan.startup.failed", "message": tracebacks.author_traceback(problem.cause)}
                    )
                    return
                except SetupProblem as problem:
                    await send({"type": "lifespan.startup.failed", "message": str(problem)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                try:
                    await asyncio.to_thread(self._hosted.end)
                except AuthorProblem as problem:
                    await send(
                        {"type": "lifespan.shutdown.failed", "message": tracebacks.author_traceback(problem.cause)}
                    )
                    return
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def answer(self, scope: Scope, receive: Receive, send: Send, path: str | None = None) -> None:
        """Answers a request. ``path`` replaces the request's path, for a host that does its own routing."""
        begun = await self._started_endpoint(send)
        if begun is None:
            return
        below = path or self._path_below_mount(scope, begun)
        if path is None and begun.beside is not None and not self._is_own(below):
            await self._answer_beside(begun, begun.beside, scope, receive, send)
            return
        refusal = None if self._policy is None else self._policy.refusal(scope["headers"])
        if refusal is not None:
            await _send_refusal(send, refusal[0], refusal[1].encode())
            return
        reason = begun.loopback_only
        if reason is not None and _is_elsewhere(scope.get("client")):
            logger.warning("refused a request from %r: %s", scope.get("client"), reason)
            await _send_refusal(send, 403, reason.encode())
            return
        try:
            body = await self._read_body(receive)
        except ConnectionResetError:
            # The client is gone, and this is no error that the host should log.
            return
        if body is None:
            await _send_refusal(send, 413, b"the body is too large")
            return
        headers = [(bytes(name), bytes(value)) for name, value in scope["headers"]]
        call = asyncio.ensure_future(
            _await_future(
                begun.endpoint.call(
                    scope["method"],
                    _target(scope, below),
                    headers,
                    body,
                    client=_address(scope.get("client")),
                    server=_address(scope.get("server")),
                    scheme=str(scope.get("scheme", "http")),
                )
            )
        )
        gone = asyncio.ensure_future(_until_disconnect(receive))
        try:
            await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                await _pass_on(call.result(), gone, send)
        finally:
            # Cancelling this task also cancels the handler of a call in progress.
            call.cancel()
            gone.cancel()

    async def answer_beside(self, application: Any, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs an ASGI application on the runtime's event loop, where the author's lifespan was entered."""
        begun = await self._started_endpoint(send)
        if begun is not None:
            await self._answer_beside(begun, application, scope, receive, send)

    async def _started_endpoint(self, send: Send) -> StartedEndpoint | None:
        """The started endpoint; ``None`` if it can't start, after the client has received an error."""
        try:
            return self._hosted.begun or await self._hosted.begin_on_loop()
        except SetupProblem:
            await _send_refusal(send, 503, NOT_YET.encode())
            return None

    async def _answer_beside(
        self, begun: StartedEndpoint, application: Any, scope: Scope, receive: Receive, send: Send
    ) -> None:
        host, own = asyncio.get_running_loop(), begun.core.event_loop()

        def on_host(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def call(*words: Any) -> Any:
                return await asyncio.wrap_future(
                    asyncio.run_coroutine_threadsafe(_await_future(function(*words)), host)
                )

            return call

        running = application(scope, on_host(receive), on_host(send))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_await_future(running), own))

    def _path_below_mount(self, scope: Scope, begun: StartedEndpoint) -> str:
        """The path below the mount; the mount's own root stands for the endpoint."""
        path, root = str(scope["path"]), str(scope.get("root_path", ""))
        below = path[len(root) :] if root and path.startswith(root) else path
        return self._settings.path if below in ("", "/") and begun.beside is None else below

    def _is_own(self, path: str) -> bool:
        """Whether the runtime answers a path, and not a custom route."""
        legacy = (SSE_PATH, MESSAGES_PATH) if self._settings.transport == "sse" else ()
        return path.rstrip("/") in (self._settings.path.rstrip("/"), *legacy) or path.startswith(METADATA_PATH)

    async def _read_body(self, receive: Receive) -> bytes | None:
        """The whole body; ``None`` if it is too long. Raises ``ConnectionResetError`` if the client disconnects."""
        parts: list[bytes] = []
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client left before its request was whole")
            part = bytes(message.get("body", b""))
            length += len(part)
            if length > self._body_limit:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


def _target(scope: Scope, path: str) -> str:
    query = bytes(scope.get("query_string", b"")).decode("latin-1")
    return f"{path}?{query}" if query else path


def _address(named: Any) -> tuple[str, int] | None:
    """An address as ASGI has it: a host and a port. A Unix socket's server has no port."""
    if named is None or not isinstance(named[1], int):
        return None
    return str(named[0]), named[1]


def _is_elsewhere(client: Any) -> bool:
    """Whether a request comes from another machine. A client without an address (a Unix socket, a test) is on this
    machine."""
    try:
        host = str(client[0])
        ipaddress.ip_address(host)
    except (TypeError, IndexError, ValueError):
        return False
    return not is_loopback(host)


async def _pass_on(reply: Any, gone: asyncio.Future[None], send: Send) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
    while True:
        piece = asyncio.ensure_future(_await_future(reply.next()))
        await asyncio.wait({piece, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not piece.done():
            piece.cancel()
            await reply.close()
            return
        data = piece.result()
        if data is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _send_refusal(send: Send, status: int, reason: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(reason)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason, "more_body": False})


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _await_future(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
