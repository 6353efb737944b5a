"""The endpoint in a URLconf: views that hand Django's requests to the runtime and its answers back.

Under WSGI a reply is whole before it is sent, and there are no sessions, since the next request may reach another
process; under ASGI a reply may be a stream.

Design constraint: no transaction around a view (the call has its own, in its own thread), no CSRF check (there is no
cookie to misuse; origins are checked by the runtime), hosts by the project's ``ALLOWED_HOSTS``.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException, StreamingHttpResponse
from django.http.request import RequestDataTooBig, UnreadablePostError
from django.urls import URLPattern, path

from mcpace.django.conf import setting
from mcpace.django.stores import stored
from mcpace.server.errors import logger
from mcpace.server.running.addresses import is_loopback
from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.hosted import NOT_YET, Hosted
from mcpace.server.running.prepared import prepare
from mcpace.server.running.settings import Settings

if TYPE_CHECKING:
    from mcpace.django.app import MCPServer

Patterns = tuple[list[URLPattern], str, str]
ENDPOINT, METADATA = "/mcp", "/.well-known/oauth-protected-resource"
WITHOUT_BODY = ("GET", "DELETE", "OPTIONS", "HEAD")


def patterns(server: MCPServer, namespace: str, *, is_async: bool) -> Patterns:
    """As ``path("mcp/", server.urls)`` wants them."""
    hosted = hosted_by(server, is_async=is_async)
    reason = getattr(server.backend, "loopback_only", None)
    answer = view(hosted, ENDPOINT, is_async=is_async, loopback_only=reason)
    return [path("", answer, name="endpoint")], namespace, namespace


def metadata_patterns(server: MCPServer, namespace: str, *, is_async: bool) -> Patterns:
    """The protected resource's metadata, for the root of the URLconf."""
    answer = view(hosted_by(server, is_async=is_async), METADATA + ENDPOINT, is_async=is_async)
    resource = urlsplit(getattr(server.backend, "resource_url", None) or "").path.strip("/")
    places = [METADATA[1:], *([f"{METADATA[1:]}/{resource}"] if resource else [])]
    return [path(place, answer) for place in places], f"{namespace}-metadata", f"{namespace}-metadata"


def hosted_by(server: MCPServer, *, is_async: bool) -> Hosted:
    """The endpoint of a server in this process, the same for all of its views of a kind."""
    kept: dict[bool, Hosted] = server._hosted
    if is_async not in kept:
        stateless = setting("STATELESS")
        is_stateless = not is_async if stateless is None else stateless
        settings = Settings(
            stateless=is_stateless,
            json_response=not is_async,
            max_body=setting("MAX_REQUEST_BYTES"),
            # Django has looked at the host by then.
            allowed_hosts=("*",),
            allowed_origins=tuple(setting("ALLOWED_ORIGINS")),
            **({} if is_stateless else stored(setting("STORE"), "STORE")),
        )
        kept[is_async] = hosted = Hosted(lambda: prepare(server), settings)
        atexit.register(hosted.end)
        _servers.add(server)
    return kept[is_async]


_servers: WeakSet[MCPServer] = WeakSet()


def _begin_anew() -> None:
    """In a child of a process that may have served: a prefork server's, which was asked before it forked."""
    for server in _servers:
        server._inside.started = None
        for hosted in server._hosted.values():
            hosted.forget()


os.register_at_fork(after_in_child=_begin_anew)


def view(hosted: Hosted, target: str, *, is_async: bool, loopback_only: str | None = None) -> Callable[..., Any]:
    """A view that answers what comes to it as if it had come to ``target``. ``loopback_only``: why other machines are
    refused, where they are."""
    made = (_async_view if is_async else _view)(hosted, target, loopback_only)
    made.csrf_exempt = True  # type: ignore[attr-defined]
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(made)
    return made


def _view(hosted: Hosted, target: str, loopback_only: str | None) -> Callable[..., Any]:
    def answer(request: HttpRequest) -> HttpResponse:
        body = _checked(request, loopback_only)
        if isinstance(body, HttpResponse):
            return body
        try:
            begun = hosted.begun or hosted.begin()
        except SetupProblem:
            return _not_yet()
        endpoint, loop = begun.endpoint, begun.core.event_loop()

        def wait(make: Callable[[], Awaitable[Any]]) -> Any:
            return asyncio.run_coroutine_threadsafe(_awaited(make), loop).result()

        reply = wait(lambda: _called(endpoint, request, target, body))
        pieces = iter(lambda: wait(reply.next), None)
        if reply.is_stream:
            return _with_headers(StreamingHttpResponse(_closed(pieces, lambda: wait(reply.close))), reply)
        return _with_headers(HttpResponse(b"".join(pieces)), reply)

    return answer


def _async_view(hosted: Hosted, target: str, loopback_only: str | None) -> Callable[..., Any]:
    async def answer(request: HttpRequest) -> HttpResponse:
        body = _checked(request, loopback_only)
        if isinstance(body, HttpResponse):
            return body
        try:
            begun = hosted.begun or await hosted.begin_on_loop()
        except SetupProblem:
            return _not_yet()
        # Where the host cancels the view, since its client left, the call is cancelled too.
        reply = await _called(begun.endpoint, request, target, body)
        if reply.is_stream:
            return _with_headers(StreamingHttpResponse(_streamed(reply)), reply)
        whole = b"".join([piece async for piece in _streamed(reply)])
        return _with_headers(HttpResponse(whole), reply)

    return answer


def _not_yet() -> HttpResponse:
    """Where what the endpoint needs is away, such as a store. The next request tries again."""
    return _refused(503, NOT_YET)


async def _streamed(reply: Any) -> AsyncIterator[bytes]:
    is_over = False
    try:
        while (piece := await reply.next()) is not None:
            yield piece
        is_over = True
    finally:
        if not is_over:
            await reply.close()


def _closed(pieces: Iterator[bytes], close: Callable[[], None]) -> Iterator[bytes]:
    try:
        yield from pieces
    finally:
        close()


async def _awaited(make: Callable[[], Awaitable[Any]]) -> Any:
    # Made on the loop that waits for it.
    return await make()


def _checked(request: HttpRequest, loopback_only: str | None) -> bytes | HttpResponse:
    """The body, or why there is none. Raises ``DisallowedHost`` where the project doesn't know the host."""
    request.get_host()
    if loopback_only is not None and not is_loopback(request.META.get("REMOTE_ADDR", "")):
        logger.warning("refused a request from %r: %s", request.META.get("REMOTE_ADDR"), loopback_only)
        return _refused(403, loopback_only)
    wrong = next((name for name, value in request.headers.items() if not _HEADER.fullmatch(value)), None)
    if wrong is not None:
        return _refused(400, f"the header {wrong} has characters that HTTP does not allow")
    limit = setting("MAX_REQUEST_BYTES")
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return _refused(400, "the length of the body is no number")
    if limit is not None and length > limit:
        return _refused(413, f"the body is larger than {limit} bytes")
    try:
        return request.body if request.method not in WITHOUT_BODY else b""
    except RequestDataTooBig:
        return _refused(413, "the body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE")
    except (UnreadablePostError, RawPostDataException):
        return _refused(400, "the body could not be read")


_HEADER = re.compile("[\t\x20-\x7e\x80-\xff]*")
"""A header's value (RFC 9110, 5.5)."""


def _refused(status: int, reason: str) -> HttpResponse:
    return HttpResponse(reason, status=status, content_type="text/plain")


def _target(request: HttpRequest, target: str) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"{target}?{query}" if query else target


def _called(endpoint: Any, request: HttpRequest, target: str, body: bytes) -> Awaitable[Any]:
    address, port = request.META.get("REMOTE_ADDR"), request.META.get("REMOTE_PORT")
    client = (address, int(port or 0)) if address else None
    return endpoint.call(  # type: ignore[no-any-return]
        request.method, _target(request, target), _headers(request), body, client=client, scheme=request.scheme
    )


def _headers(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    given = {name: value for name, value in request.headers.items() if value}
    if "Host" not in given:
        # Clients of HTTP/1.0 name none.
        given["Host"] = request.get_host()
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]


def _with_headers(response: Any, reply: Any) -> Any:
    response.status_code = reply.status
    # Django's own would be text/html.
    del response["Content-Type"]
    for name, value in reply.headers:
        # The host frames what it sends.
        if name.lower() not in (b"content-length", b"transfer-encoding", b"connection", b"date"):
            response[name.decode("latin-1")] = value.decode("latin-1")
    return response
