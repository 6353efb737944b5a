"""What FastMCP injects: parameters whose defaults say where their values come from.

Design constraint: which parameters are injected is found out at registration; a function without any is called bare.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcpace.fastmcp.context import current, get_context
from mcpace.server.calling import call_function
from mcpace.server.injection import find_context
from mcpace.server.signature import is_async, signature_of


class _Depends:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def Depends(function: Callable[..., Any]) -> Any:
    """A parameter's value is what ``function`` gives, made once a call.

    It may be a coroutine function, a generator or give a context manager, which is left when the call is over, and may
    have dependencies of its own."""
    if not callable(function):
        raise TypeError(f"Depends takes a function, not {type(function).__name__}")
    return _Depends(function)


class _Current:
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def value(self) -> Any:
        return self._find()


def CurrentContext() -> Any:
    """The call's context."""
    return _Current(get_context)


def CurrentFastMCP() -> Any:
    """The server."""
    return _Current(lambda: get_context().fastmcp)


def CurrentRequest() -> Any:
    """The HTTP request."""
    return _Current(get_http_request)


def CurrentHeaders() -> Any:
    """The HTTP request's headers, those with credentials left out; empty over stdio."""
    return _Current(get_http_headers)


def CurrentAccessToken() -> Any:
    """The caller's token. Raises where there is none."""

    def find() -> Any:
        token = get_access_token()
        if token is None:
            raise RuntimeError("No access token found. Ensure authentication is configured and the request has one.")
        return token

    return _Current(find)


def TokenClaim(name: str) -> Any:
    """A claim of the caller's token. Raises where there is none of this name."""

    def find() -> Any:
        token = get_access_token()
        claims = getattr(token, "claims", None) or {}
        if name not in claims:
            raise RuntimeError(f"Claim {name!r} not found in the access token")
        return claims[name]

    return _Current(find)


class Progress:
    """Counts up to a total, and tells the client."""

    def __init__(self) -> None:
        self.current = 0.0
        self.total: float | None = None
        self.message: str | None = None

    def value(self) -> Progress:
        """One of its own for each call."""
        return Progress()

    async def set_total(self, total: float) -> None:
        """How far it goes."""
        self.total = total

    async def increment(self, amount: float = 1) -> None:
        """Goes on, and tells."""
        self.current += amount
        await self._tell()

    async def set_message(self, message: str | None) -> None:
        """Says what is being done."""
        self.message = message
        await self._tell()

    async def _tell(self) -> None:
        await get_context().report_progress(self.current, self.total, self.message)


Dependency = _Depends | _Current | Progress
"""The default of a parameter that the server fills in."""

_PRIVATE = frozenset({"authorization", "cookie", "set-cookie", "proxy-authorization"})
_OF_THE_HOP = frozenset(
    {"host", "content-length", "content-type", "connection", "transfer-encoding", "accept", "keep-alive", "te"}
    | {"trailer", "upgrade", "expect", "mcp-session-id"}
)


def get_http_headers(include_all: bool = False, include: set[str] | None = None) -> dict[str, str]:
    """The HTTP request's headers in lower case; empty where there is no request.

    Credentials, and what belongs to the connection, are left out unless they are asked for."""
    context = current.get(None)
    headers = None if context is None or context.call is None else context.headers
    left_out = frozenset() if include_all else (_PRIVATE | _OF_THE_HOP) - {name.lower() for name in include or ()}
    return {name: value for name, value in (headers or {}).items() if name not in left_out}


def get_http_request() -> Any:
    """The HTTP request. Raises ``RuntimeError`` where there is none."""
    context = current.get(None)
    request = None if context is None or context.call is None else context.request_context.request
    if request is None:
        raise RuntimeError("No active HTTP request found.")
    return request


def get_access_token() -> Any:
    """The caller's token, as the verifier gave it; ``None`` where there is none."""
    context = current.get(None)
    return None if context is None or context.call is None else context.call.principal


def injected(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without the parameters that the server fills in; itself where it has none."""
    context = find_context(function)
    dependencies = dependencies_of(function)
    if context is None and not dependencies:
        return function
    runs_async = is_async(function)

    @functools.wraps(function)
    async def call(**keywords: Any) -> Any:
        if context is not None:
            keywords[context] = get_context()
        async with resolved(dependencies) as found:
            return await call_function(function, runs_async, keywords | found)

    signature = signature_of(function)
    left = [one for name, one in signature.parameters.items() if name != context and name not in dependencies]
    # Read by whoever looks at the signature; `wraps` would lead them to the function within.
    call.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    del call.__wrapped__
    return call


def dependencies_of(function: Callable[..., Any]) -> dict[str, Dependency]:
    """The parameters that are injected by their defaults."""
    parameters = inspect.signature(function).parameters.items()
    return {name: one.default for name, one in parameters if isinstance(one.default, Dependency)}


@asynccontextmanager
async def resolved(dependencies: dict[str, Dependency]) -> AsyncIterator[dict[str, Any]]:
    """The values of dependencies, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        made: dict[Callable[..., Any], Any] = {}
        yield {name: await _value(one, stack, made) for name, one in dependencies.items()}


async def _value(dependency: Dependency, stack: AsyncExitStack, made: dict[Callable[..., Any], Any]) -> Any:
    if not isinstance(dependency, _Depends):
        found = dependency.value()
        return await found if inspect.isawaitable(found) else found
    function = dependency.function
    if function in made:
        return made[function]
    keywords = {name: await _value(one, stack, made) for name, one in dependencies_of(function).items()}
    context = find_context(function)
    if context is not None:
        keywords[context] = get_context()
    if inspect.isasyncgenfunction(function):
        value = await stack.enter_async_context(asynccontextmanager(function)(**keywords))
    elif inspect.isgeneratorfunction(function):
        from contextlib import contextmanager

        value = stack.enter_context(contextmanager(function)(**keywords))
    else:
        value = await call_function(function, is_async(function), keywords)
        if hasattr(value, "__aenter__"):
            value = await stack.enter_async_context(value)
        elif hasattr(value, "__enter__"):
            value = stack.enter_context(value)
    made[function] = value
    return value
