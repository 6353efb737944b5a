"""The endpoint in a URLconf: views that pass Django's requests to the runtime and return its answers.

Under WSGI a reply is complete before it is sent, and there are no sessions, because the next request may reach another
process. Under ASGI a reply may be a stream.

Design constraint: a view has no transaction (the call has its own, in its own thread) and no CSRF check (no cookie
could be misused; the runtime checks origins). The project's ``ALLOWED_HOSTS`` determines the hosts.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException, StreamingHttpResponse
from django.http.request import RequestDataTooBig, UnreadablePostError
from django.urls import URLPattern, path

from mcpace.django.conf import setting
from mcpace.django.stores import store_settings
from mcpace.server.errors import logger
from mcpace.server.running.addresses import is_loopback
from mcpace.server.running.embedded_endpoint import NOT_YET, EmbeddedEndpoint
from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.prepared import prepare
from mcpace.server.running.settings import Settings

if TYPE_CHECKING:
    from mcpace.django.app import MCPServer

Patterns = tuple[list[URLPattern], str, str]
ENDPOINT, METADATA = "/mcp", "/.well-known/oauth-protected-resource"
WITHOUT_BODY = ("GET", "DELETE", "OPTIONS", "HEAD")


def patterns(server: MCPServer, namespace: str, *, is_async: bool) -> Patterns:
    """URL patterns of the endpoint, in the form that ``path("mcp/", server.urls)`` needs."""
    hosted = hosted_by(server, is_async=is_async)
    reason = getattr(server.backend, "loopback_only", None)
    answer = view(hosted, ENDPOINT, is_async=is_async, loopback_only=reason)
    return [path("", answer, name="endpoint")], namespace, namespace


def metadata_patterns(server: MCPServer, namespace: str, *, is_async: bool) -> Patterns:
    """URL patterns of the protected resource's metadata, for the root of the URLconf."""
    answer = view(hosted_by(server, is_async=is_async), METADATA + ENDPOINT, is_async=is_async)
    resource = urlsplit(getattr(server.backend, "resource_url", None) or "").path.strip("/")
    places = [METADATA[1:], *([f"{METADATA[1:]}/{resource}"] if resource else [])]
    return [path(place, answer) for place in places], f"{namespace}-metadata", f"{namespace}-metadata"


def hosted_by(server: MCPServer, *, is_async: bool) -> EmbeddedEndpoint:
    """The endpoint of a server in this process. All synchronous views share one, and all asynchronous views another."""
    kept: dict[bool, EmbeddedEndpoint] = server._hosted
    if is_async not in kept:
        stateless = setting("STATELESS")
        is_stateless = not is_async if stateless is None else stateless
        settings = Settings(
            stateless=is_stateless,
            json_response=not is_async,
            max_body=setting("MAX_REQUEST_BYTES"),
            # Django checks the host itself.
            allowed_hosts=("*",),
            allowed_origins=tuple(setting("ALLOWED_ORIGINS")),
            **({} if is_stateless else store_settings(setting("STORE"), "STORE")),
        )
        kept[is_async] = hosted = EmbeddedEndpoint(lambda: prepare(server), settings)
        atexit.register(hosted.end)
        _servers.add(server)
    return kept[is_async]


_servers: WeakSet[MCPServer] = WeakSet()


def _reset_after_fork() -> None:
    """Resets the endpoints after a fork. A prefork server may have answered requests before it forked."""
    for server in _servers:
        server.__mcpace_core__.forget_core()
        for hosted in server._hosted.values():
            hosted.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_reset_after_fork)


def view(
    hosted: EmbeddedEndpoint, target: str, *, is_async: bool, loopback_only: str | None = None
) -> Callable[..., Any]:
    """A view that answers its requests as if they had been sent to ``target``. ``loopback_only``: the reason for
    refusing other machines; ``None`` accepts them."""
    made = (_async_view if is_async else _sync_view)(hosted, target, loopback_only)
    made.csrf_exempt = True  # type: ignore[attr-defined]
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(made)
    return made


def _sync_view(hosted: EmbeddedEndpoint, target: str, loopback_only: str | None) -> Callable[..., Any]:
    def answer(request: HttpRequest) -> HttpResponse:
        body = _check_request(request, loopback_only)
        if isinstance(body, HttpResponse):
            return body
        try:
            begun = hosted.begun or hosted.begin()
        except SetupProblem:
            return _unavailable()
        endpoint, loop = begun.endpoint, begun.core.event_loop()

        def wait(make: Callable[[], Awaitable[Any]]) -> Any:
            return asyncio.run_coroutine_threadsafe(_await_on_loop(make), loop).result()

        reply = wait(lambda: _call_endpoint(endpoint, request, target, body))
        pieces = iter(lambda: wait(reply.next), None)
        if reply.is_stream:
            return _with_headers(StreamingHttpResponse(_closing(pieces, lambda: wait(reply.close))), reply)
        return _with_headers(HttpResponse(b"".join(pieces)), reply)

    return answer


def _async_view(hosted: EmbeddedEndpoint, target: str, loopback_only: str | None) -> Callable[..., Any]:
    async def answer(request: HttpRequest) -> HttpResponse:
        body = _check_request(request, loopback_only)
        if isinstance(body, HttpResponse):
            return body
        try:
            begun = hosted.begun or await hosted.begin_on_loop()
        except SetupProblem:
            return _unavailable()
        # The host cancels the view when its client disconnects, which cancels the call.
        reply = await _call_endpoint(begun.endpoint, request, target, body)
        if reply.is_stream:
            return _with_headers(StreamingHttpResponse(_stream_body(reply)), reply)
        whole = b"".join([piece async for piece in _stream_body(reply)])
        return _with_headers(HttpResponse(whole), reply)

    return answer


def _unavailable() -> HttpResponse:
    """The reply while the endpoint can't start, for example because a store is unavailable. The next request tries
    again."""
    return _refusal(503, NOT_YET)


async def _stream_body(reply: Any) -> AsyncIterator[bytes]:
    is_over = False
    try:
        while (piece := await reply.next()) is not None:
            yield piece
        is_over = True
    finally:
        if not is_over:
            await reply.close()


def _closing(pieces: Iterator[bytes], close: Callable[[], None]) -> Iterator[bytes]:
    try:
        yield from pieces
    finally:
        close()


async def _await_on_loop(make: Callable[[], Awaitable[Any]]) -> Any:
    # The awaitable must be created on the loop that awaits it.
    return await make()


def _check_request(request: HttpRequest, loopback_only: str | None) -> bytes | HttpResponse:
    """The body of a request, or the reply that refuses it. Raises ``DisallowedHost`` for an unknown host."""
    request.get_host()
    if loopback_only is not None and not is_loopback(request.META.get("REMOTE_ADDR", "")):
        logger.warning("refused a request from %r: %s", request.META.get("REMOTE_ADDR"), loopback_only)
        return _refusal(403, loopback_only)
    wrong = next((name for name, value in request.headers.items() if not _HEADER.fullmatch(value)), None)
    if wrong is not None:
        return _refusal(400, f"the header {wrong} has characters that HTTP does not allow")
    limit = setting("MAX_REQUEST_BYTES")
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return _refusal(400, "the length of the body is no number")
    if limit is not None and length > limit:
        return _refusal(413, f"the body is larger than {limit} bytes")
    try:
        return request.body if request.method not in WITHOUT_BODY else b""
    except RequestDataTooBig:
        return _refusal(413, "the body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE")
    except (UnreadablePostError, RawPostDataException):
        return _refusal(400, "the body could not be read")


_HEADER = re.compile("[\t\x20-\x7e\x80-\xff]*")
"""Characters that a header's value may contain (RFC 9110, 5.5)."""


def _refusal(status: int, reason: str) -> HttpResponse:
    return HttpResponse(reason, status=status, content_type="text/plain")


def _target(request: HttpRequest, target: str) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"{target}?{query}" if query else target


def _call_endpoint(endpoint: Any, request: HttpRequest, target: str, body: bytes) -> Awaitable[Any]:
    address, port = request.META.get("REMOTE_ADDR"), request.META.get("REMOTE_PORT")
    client = (address, int(port or 0)) if address else None
    return endpoint.call(  # type: ignore[no-any-return]
        request.method, _target(request, target), _headers(request), body, client=client, scheme=request.scheme
    )


def _headers(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    given = {name: value for name, value in request.headers.items() if value}
    if "Host" not in given:
        # HTTP/1.0 clients send no Host header.
        given["Host"] = request.get_host()
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]


def _with_headers(response: Any, reply: Any) -> Any:
    response.status_code = reply.status
    # Django's default would be text/html.
    del response["Content-Type"]
    for name, value in reply.headers:
        # The host itself frames the response.
        if name.lower() not in (b"content-length", b"transfer-encoding", b"connection", b"date"):
            response[name.decode("latin-1")] = value.decode("latin-1")
    return response
