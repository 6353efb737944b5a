"""FastMCP's dependencies: parameters whose defaults or annotations name the source of their values.

Design constraint: the dependencies of a function, and those of its dependencies, are collected and checked at
registration. A function without dependencies is called directly. A client never sends a value for a dependency.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

from mcpace.fastmcp.context import VISIBILITY, current, get_context
from mcpace.server.calls.invocation import call_function
from mcpace.server.errors import InvalidSignature, MCPError, UnsupportedOption, is_tool_error
from mcpace.server.registration.context_use_scan import CHANGES, find_names
from mcpace.server.registration.injection import find_context, hints_of
from mcpace.server.registration.markers import Marker, alias_value, check_nested
from mcpace.server.registration.signature import is_async, name_of, signature_of
from mcpace.types import INVALID_PARAMS, MODERN, InputRequiredResult, is_kind

ValueT = TypeVar("ValueT")


class Dependency(Marker, Generic[ValueT]):
    """Base class of dependencies. ``__aenter__`` returns the value for a call, ``__aexit__`` cleans up after the call.

    An instance of a subclass is the default of a parameter.
    """

    async def __aenter__(self) -> ValueT:
        raise NotImplementedError

    async def __aexit__(self, *error: object) -> None:
        """Does nothing, unless overridden."""


class _Depends(Dependency[Any]):
    def __init__(self, function: Callable[..., Any], bindings: Mapping[str, Any]) -> None:
        self.function = function
        self.bindings = bindings

    def key(self) -> Hashable:
        """A key that is equal for dependencies which share a value within a call."""
        return self.function, tuple((name, _key(self.bindings[name], name)) for name in sorted(self.bindings))


def Depends(function: Callable[..., Any], **bindings: Any) -> Any:
    """A dependency on the return value of ``function``, which is called once in each call.

    The function may be a coroutine function or a generator, or may return a context manager, which is exited after the
    call. The function may have dependencies, too. ``bindings`` are its arguments: values, or dependencies such as
    ``CallArgument("owner")``. ``Annotated[T, Depends(function)]`` is equivalent to a default.
    """
    if not callable(function):
        raise TypeError(f"Depends takes a function, not {type(function).__name__}")
    return _Depends(function, bindings)


class _CallArgument(Dependency[Any]):
    def __init__(self, parameter: str | None, optional: bool, default: Any) -> None:
        if optional and default is not inspect.Parameter.empty:
            raise TypeError("CallArgument takes optional or default, not both")
        self.parameter = parameter
        self.optional = optional
        self.default = default

    @property
    def has_fallback(self) -> bool:
        """Whether there is a fallback for an outer function without the argument."""
        return self.optional or self.default is not inspect.Parameter.empty

    @property
    def fallback(self) -> Any:
        """The value for an outer function without the argument."""
        return None if self.optional else self.default


def CallArgument(
    parameter: str | None = None, optional: bool = False, *, default: Any = inspect.Parameter.empty
) -> Any:
    """A dependency on an argument of the outer function, by default the argument of the parameter's name."""
    return _CallArgument(parameter, optional, default)


class _Current(Dependency[Any]):
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    async def __aenter__(self) -> Any:
        return self._find()


def CurrentContext() -> Any:
    """A dependency on the context of the call."""
    return _Current(get_context)


def CurrentFastMCP() -> Any:
    """A dependency on the server."""
    return _Current(get_server)


def CurrentRequest() -> Any:
    """A dependency on the HTTP request. The call fails where there is none."""
    return _Current(get_http_request)


def CurrentHeaders() -> Any:
    """A dependency on the HTTP request's headers, including ``authorization`` and ``cookie``; empty over stdio."""
    return _Current(lambda: get_http_headers(include={"authorization", "cookie"}))


def CurrentAccessToken() -> Any:
    """A dependency on the caller's token. The call fails where there is none."""

    def find() -> Any:
        token = get_access_token()
        if token is None:
            raise RuntimeError("No access token found. Ensure authentication is configured and the request has one.")
        return token

    return _Current(find)


def TokenClaim(name: str) -> Any:
    """A dependency on a claim of the caller's token, as text. The call fails where the token lacks the claim."""

    def find() -> str:
        token = get_access_token()
        if token is None:
            raise RuntimeError(f"No access token available. Cannot extract claim {name!r}.")
        claims = getattr(token, "claims", None) or {}
        if claims.get(name) is None:
            raise RuntimeError(f"Claim {name!r} not found in access token. Available claims: {list(claims)}")
        return str(claims[name])

    return _Current(find)


class Progress(Dependency["Progress"]):
    """A counter up to a total, which reports its progress to the client."""

    def __init__(self) -> None:
        self.current: float | None = None
        self.total: float = 1
        self.message: str | None = None

    async def __aenter__(self) -> Progress:
        return Progress()

    async def set_total(self, total: float) -> None:
        """Sets the total."""
        if total < 1:
            raise ValueError("Total must be at least 1")
        self.total = total

    async def increment(self, amount: float = 1) -> None:
        """Increases the counter and reports it."""
        if amount < 1:
            raise ValueError("Amount must be at least 1")
        self.current = (self.current or 0) + amount
        await self._report()

    async def set_message(self, message: str | None) -> None:
        """Sets the message and reports it."""
        self.message = message
        await self._report()

    async def _report(self) -> None:
        await get_context().report_progress(self.current or 0, self.total, self.message)


_NOT_FORWARDED = frozenset(
    {"authorization", "cookie", "set-cookie", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"host", "content-length", "content-type", "connection", "transfer-encoding", "accept", "keep-alive", "te"}
    | {"trailer", "upgrade", "expect", "mcp-session-id"}
)


def get_server() -> Any:
    """The server of the current call. Raises ``RuntimeError`` outside of one."""
    return get_context().fastmcp


def get_http_headers(include_all: bool = False, include: set[str] | None = None) -> dict[str, str]:
    """The HTTP request's headers in lower case; empty where there is no request.

    Credentials, and headers that belong to the connection, are left out unless ``include`` names them."""
    context = current.get(None)
    headers = None if context is None or context.call is None else context.headers
    left_out = frozenset() if include_all else _NOT_FORWARDED - {name.lower() for name in include or ()}
    return {name: value for name, value in (headers or {}).items() if name not in left_out}


def get_http_request() -> Any:
    """The HTTP request: Starlette's, where that is installed. Raises ``RuntimeError`` where there is none.

    The request has the client's headers and address. Its path and body are placeholders."""
    context = current.get(None)
    surroundings = None if context is None or context.call is None else context.request_context
    if surroundings is None or surroundings.request is None:
        raise RuntimeError("No active HTTP request found.")
    return _starlette_request(surroundings.request)


def _starlette_request(request: Any) -> Any:
    try:
        from starlette.requests import Request
    except ImportError:
        return request
    client = getattr(request, "client", None)
    return Request(
        {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "query_string": b"",
            "headers": [(name.encode("latin-1"), one.encode("latin-1")) for name, one in request.headers.items()],
            "client": None if client is None else (client.host, client.port),
        }
    )


def get_access_token() -> Any:
    """The caller's token, as the verifier returned it; ``None`` where there is none."""
    context = current.get(None)
    return None if context is None or context.call is None else context.call.principal


# Registration --------------------------------------------------------------------------------------------------------


def inject_dependencies(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that its signature lacks the parameters that the server fills in; a function without such
    parameters isn't wrapped.

    A generator function becomes one that returns the list of its values. Raises ``InvalidSignature`` for a parameter of
    a dependency that has no source, and ``UnsupportedOption`` for a function that changes the visible components of its
    session.
    """
    changes = find_names(function, CHANGES)
    if changes is not None:
        raise UnsupportedOption(f"{name_of(function)}: {changes}. {VISIBILITY}")
    context = find_context(function)
    dependencies = dependencies_of(function)
    if context is None and not dependencies:
        return _collect_generator(function)
    signature = signature_of(function)
    left = [one for name, one in signature.parameters.items() if name != context and name not in dependencies]
    check_dependencies(name_of(function), dependencies, set(signature.parameters))
    target = _collect_generator(function)
    runs_async = is_async(target)

    @functools.wraps(function)
    async def call(**keywords: Any) -> Any:
        if context is not None:
            keywords[context] = get_context()
        async with resolve_dependencies(function, dependencies, keywords) as found:
            return _check_answerable(await call_function(target, runs_async, keywords | found), name_of(function))

    call.__name__ = name_of(function)
    # `inspect.signature` reads this attribute. With `__wrapped__` it would read the wrapped function instead.
    call.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    del call.__wrapped__
    hints = hints_of(function)
    call.__annotations__ = {one.name: hints.get(one.name, one.annotation) for one in left if one.name in hints}
    if signature.return_annotation is not signature.empty:
        call.__annotations__["return"] = hints.get("return", signature.return_annotation)
    return call


def dependencies_of(function: Callable[..., Any]) -> dict[str, Dependency[Any]]:
    """The dependencies of a function by parameter, from defaults and from the metadata of annotations."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # Some built-in types have no signature.
        return {}
    hints = hints_of(function)
    found = {}
    for name, parameter in parameters.items():
        markers = [parameter.default, *_metadata(hints.get(name))]
        marker = next((one for one in markers if isinstance(one, Dependency)), None)
        if marker is not None:
            found[name] = marker
    return found


def check_dependencies(outer: str, dependencies: Mapping[str, Dependency[Any]], arguments: Collection[str]) -> None:
    """Raises ``InvalidSignature`` where a dependency, direct or indirect, can't be resolved."""
    for parameter, dependency in dependencies.items():
        if isinstance(dependency, _CallArgument):
            wanted = dependency.parameter or parameter
            if wanted not in arguments and not dependency.has_fallback:
                raise InvalidSignature(f"CallArgument({wanted!r}) of {outer}: the function has no parameter {wanted!r}")
        elif isinstance(dependency, _Depends):
            _check_function(outer, dependency, arguments)


def _check_function(outer: str, dependency: _Depends, arguments: Collection[str]) -> None:
    function, bindings = dependency.function, dependency.bindings
    own = {name: one for name, one in dependencies_of(function).items() if name not in bindings}
    bound = {name: one for name, one in bindings.items() if isinstance(one, Dependency)}
    context = find_context(function)
    name = f"dependency {name_of(function)!r} of {outer}"
    check_nested(function, name, {*own, *bindings, *([context] if context else [])})
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        parameters = ()  # type: ignore[assignment]
    for one in parameters:
        is_open = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if is_open and one.name not in own and one.name not in bindings and one.name != context:
            raise InvalidSignature(
                f"Parameter {one.name!r} of {name}: nobody fills it in. Give it a dependency or a default, or write "
                f"Depends({name_of(function)}, {one.name}=…)"
            )
    check_dependencies(outer, own | bound, arguments)


def _check_answerable(value: Any, function: str) -> Any:
    """Returns a function's value. Raises ``MCPError`` for questions to a client whose revision doesn't support them as
    a result."""
    if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
        revision = get_context().protocol_version
        if revision is not None and revision < MODERN:
            raise MCPError(
                INVALID_PARAMS,
                f"{function!r} returned an InputRequiredResult to request client input, but this result type only "
                f"exists at MCP {MODERN}; this connection negotiated {revision!r}. Use ctx.elicit(), which works with "
                "every revision.",
            )
    return value


def _collect_generator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a generator function so that it returns a list; returns any other function unchanged."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def listed(*args: Any, **keywords: Any) -> Any:
            return list(function(*args, **keywords))

        return listed
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def listed_async(*args: Any, **keywords: Any) -> Any:
            return [one async for one in function(*args, **keywords)]

        return listed_async
    return function


def _metadata(annotation: Any) -> Iterator[Any]:
    aliased = alias_value(annotation)
    if aliased is not None:
        yield from _metadata(aliased)
    elif get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        yield from _metadata(kind)
        yield from metadata


# A call --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def resolve_dependencies(
    function: Callable[..., Any], dependencies: Mapping[str, Dependency[Any]], arguments: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """Resolves a function's dependencies for the duration of the block."""
    async with AsyncExitStack() as stack:
        call = _Call(function, dependencies, arguments, stack)
        yield {name: await call.parameter(name) for name in dependencies}


class _Call:
    """Resolves the dependencies of one call, each of them once."""

    def __init__(
        self,
        function: Callable[..., Any],
        dependencies: Mapping[str, Dependency[Any]],
        arguments: Mapping[str, Any],
        stack: AsyncExitStack,
    ) -> None:
        self._function = function
        self._dependencies = dependencies
        self._arguments = arguments
        self._stack = stack
        self._parameters: dict[str, Any] = {}
        self._values: dict[Hashable, Any] = {}
        self._under_way: list[str] = []

    async def parameter(self, name: str) -> Any:
        """The value of a parameter that a dependency fills in."""
        if name in self._parameters:
            return self._parameters[name]
        if name in self._under_way:
            path = " -> ".join([*self._under_way, name])
            raise RuntimeError(f"Circular argument reference in {name_of(self._function)}: {path}")
        self._under_way.append(name)
        try:
            value = await self._value(self._dependencies[name], name)
        except Exception as error:
            if is_tool_error(error) or (isinstance(error, RuntimeError) and "Circular argument" in str(error)):
                raise
            raise RuntimeError(f"Failed to resolve dependency {name!r} for {name_of(self._function)}") from error
        finally:
            self._under_way.pop()
        self._parameters[name] = value
        return value

    async def _value(self, dependency: Dependency[Any], parameter: str) -> Any:
        if isinstance(dependency, _CallArgument):
            return await self._argument(dependency, dependency.parameter or parameter)
        if not isinstance(dependency, _Depends):
            return await self._stack.enter_async_context(dependency)
        key = dependency.key()
        if key not in self._values:
            self._values[key] = await self._call_dependency(dependency)
        return self._values[key]

    async def _argument(self, reference: _CallArgument, name: str) -> Any:
        if name in self._dependencies:
            return await self.parameter(name)
        if name in self._arguments:
            return self._arguments[name]
        declared = inspect.signature(self._function).parameters.get(name)
        if declared is not None and declared.default is not declared.empty:
            return declared.default
        if reference.has_fallback:
            return reference.fallback
        raise LookupError(f"{name_of(self._function)} received no argument named {name!r}")

    async def _call_dependency(self, dependency: _Depends) -> Any:
        function, keywords = dependency.function, dict(dependency.bindings)
        needed = {name: one for name, one in dependencies_of(function).items() if name not in keywords}
        needed |= {name: one for name, one in keywords.items() if isinstance(one, Dependency)}
        for name, one in needed.items():
            keywords[name] = await self._value(one, name)
        context = find_context(function)
        if context is not None and context not in keywords:
            keywords[context] = get_context()
        if inspect.isasyncgenfunction(function):
            return await self._stack.enter_async_context(asynccontextmanager(function)(**keywords))
        if inspect.isgeneratorfunction(function):
            return self._stack.enter_context(contextmanager(function)(**keywords))
        value = await call_function(function, is_async(function), keywords)
        if hasattr(value, "__aenter__"):
            return await self._stack.enter_async_context(value)
        if hasattr(value, "__enter__"):
            return self._stack.enter_context(value)
        return await value if inspect.isawaitable(value) else value


def _key(value: Any, name: str) -> Hashable:
    """A key that is equal for bindings of the same value."""
    if isinstance(value, _Depends):
        return value.key()
    if isinstance(value, _CallArgument):
        return _CallArgument, value.parameter or name, value.optional, _key(value.default, name)
    try:
        hash(value)
    except TypeError:
        return "id", id(value)
    return ("id", id(value)) if isinstance(value, Dependency) else (type(value), value)
