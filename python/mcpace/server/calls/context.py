"""The context of a call, which a function receives through a parameter annotated :class:`Context`.

Members are computed on access; a call that only reads its headers pays for nothing else.

Design constraint: the names are the official SDK's. Questions to the client go through the compiled part, which knows
the revision: before 2026-07-28 a question is sent at once; since then it ends the round, and the function runs again
with the answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, cast

from pydantic import BaseModel
from typing_extensions import TypeVar

from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    InputRequiredResult,
    InputResponses,
    LoggingLevel,
    RequestId,
)

if TYPE_CHECKING:
    from mcpace.server.app import MCPServer
    from mcpace.server.calls.elicitation import ElicitationResult, UrlElicitationResult
    from mcpace.server.calls.session import Session

LifespanT = TypeVar("LifespanT", default=Any)
RequestT = TypeVar("RequestT", default=Any)
SchemaT = TypeVar("SchemaT", bound=BaseModel)


class Call(Protocol):
    """The compiled part's interface to a call: ``_core.Context``. All ``bytes`` are JSON.

    ``meta`` is the request's ``_meta``, ``params`` all of its parameters. ``input_responses`` and ``request_state`` are
    those of earlier rounds, ``None`` in the first round. ``elicit``, ``sample`` and ``list_roots`` raise if the client
    can't be asked, or disconnects.
    """

    @property
    def request_id(self) -> RequestId: ...
    @property
    def revision(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def client_info(self) -> bytes | None: ...
    @property
    def client_capabilities(self) -> bytes | None: ...
    @property
    def principal(self) -> Any: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def meta(self) -> bytes | None: ...
    @property
    def input_responses(self) -> bytes | None: ...
    @property
    def request_state(self) -> str | None: ...
    @property
    def params(self) -> bytes | None: ...
    @property
    def task_id(self) -> str | None: ...
    def is_cancelled(self) -> bool: ...
    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...
    def log(self, level: str, logger: str | None, data: bytes) -> None: ...
    def release(self) -> None: ...
    def elicitation_complete(self, elicitation_id: str) -> None: ...
    def elicit(self, params: bytes) -> Awaitable[bytes]: ...
    def sample(self, params: bytes) -> Awaitable[bytes]: ...
    def list_roots(self) -> Awaitable[bytes]: ...
    def begin_task(self) -> Awaitable[bytes]: ...


@dataclass(frozen=True, slots=True)
class ReadResourceContents:
    """The contents that reading a resource returned."""

    content: str | bytes
    mime_type: str | None = None
    meta: dict[str, Any] | None = None


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Request:
    """The HTTP request that carried a call."""

    headers: Mapping[str, str]
    """The headers by lower-case name. The client supplies them, so they prove nothing about it."""
    client: Address | None = None
    """The address of the client or of the proxy in front; ``None`` if unknown."""


@dataclass(kw_only=True)
class RequestContext(Generic[LifespanT, RequestT]):
    """The environment of a request, for middleware and ``Context.request_context``."""

    session: Session
    lifespan_context: LifespanT
    protocol_version: str
    method: str
    params: Mapping[str, Any] | None = None
    request_id: RequestId | None = None
    meta: Mapping[str, Any] | None = None
    request: RequestT | None = None


class Context(Generic[LifespanT, RequestT]):
    """The context of one call: its facts, and messages to its client.

    A parameter annotated with it is filled in by the server and not shown to clients::

        @server.tool()
        async def build(target: str, ctx: Context) -> str:
            await ctx.report_progress(1, 2, "compiling")
            return f"built {target}"

    ``Context[AppState]`` types ``ctx.request_context.lifespan_context``.
    """

    __slots__ = ("_call", "_method", "_nested", "_request_context", "_server")

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> Any:
            """``Context[ServerSession, State, Request]`` of mcp 1.x, too; its first parameter has no meaning here."""
            is_old = isinstance(parameters, tuple) and len(parameters) == 3
            return super().__class_getitem__(parameters[1:] if is_old else parameters)

    def __init__(
        self,
        *,
        call: Call | None = None,
        server: MCPServer[Any] | None = None,
        method: str = "",
        nested: bool = False,
    ) -> None:
        self._call = call
        self._server = server
        self._method = method
        self._nested = nested
        self._request_context: RequestContext[LifespanT, RequestT] | None = None

    def __repr__(self) -> str:
        return f"Context(request_id={self._call.request_id!r})" if self._call else "Context()"

    # Facts --------------------------------------------------------------------------------------------------------

    @property
    def mcp_server(self) -> MCPServer[Any]:
        """The server."""
        if self._server is None:
            raise ValueError(_OUTSIDE)
        return self._server

    @property
    def fastmcp(self) -> Any:
        """The server, under its name of mcp 1.x."""
        return self.mcp_server

    @property
    def request_context(self) -> RequestContext[LifespanT, RequestT]:
        """The session, the lifespan's state and the request. Raises ``ValueError`` outside of a request."""
        if self._request_context is None:
            self._request_context = self._new_request_context()
        return self._request_context

    @property
    def request_id(self) -> str:
        """The call's id."""
        return str(self._require_call().request_id)

    @property
    def client_id(self) -> str | None:
        """The OAuth client that the token was issued to; without a token, the id that the request's metadata claims."""
        principal = self._require_call().principal
        named = getattr(principal, "client_id", None)
        claimed = named if named is not None else (self.meta or {}).get("client_id")
        return None if claimed is None else str(claimed)

    @property
    def session_id(self) -> str | None:
        """The session's id; ``None`` over stdio, without sessions, and since 2026-07-28."""
        return self._require_call().session_id

    @property
    def protocol_version(self) -> str | None:
        """The protocol's revision; ``None`` outside of a request."""
        return None if self._call is None else self._call.revision

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The HTTP request's headers, by name in lower case; ``None`` over stdio."""
        headers = self._require_call().headers
        return headers or None

    @property
    def meta(self) -> Mapping[str, Any] | None:
        """The request's metadata."""
        raw = self._require_call().meta
        return None if raw is None else cast("Mapping[str, Any]", json.loads(raw))

    @property
    def params(self) -> Mapping[str, Any]:
        """The request's parameters, as they were sent, or as middleware passed them on."""
        if self._request_context is not None:
            return self._request_context.params or {}
        raw = self._require_call().params
        return {} if raw is None else cast("Mapping[str, Any]", json.loads(raw))

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        """The capabilities that the client declares; ``None`` if it declares none."""
        raw = self._require_call().client_capabilities
        return None if raw is None else shared(ClientCapabilities.model_validate_json(raw))

    @property
    def session(self) -> Session:
        """The client of the call, with a method for each message of the protocol."""
        return self.request_context.session

    @property
    def lifespan_context(self) -> LifespanT:
        """The value that the server's lifespan yielded."""
        return cast("LifespanT", self.mcp_server.lifespan_context)

    @property
    def input_responses(self) -> InputResponses | None:
        """The answers to the last ``InputRequiredResult``; ``None`` in the first round.

        Answers of earlier rounds are not included; a function keeps them in ``request_state``.
        """
        if self._nested or self._call is None or self._call.input_responses is None:
            return None
        from mcpace.server.calls.session import answers_of

        answers = answers_of(self._call.input_responses)
        if self.task_id is not None:
            return answers
        sent = json.loads(self._call.params or b"{}").get("inputResponses")
        return None if sent is None else {key: answer for key, answer in answers.items() if key in sent}

    @property
    def request_state(self) -> str | None:
        """The state of the previous ``InputRequiredResult``, with a verified signature; ``None`` in the first round."""
        return None if self._nested or self._call is None else self._call.request_state

    @property
    def task_id(self) -> str | None:
        """The id of the task that the function runs as; ``None`` in a call that is no task."""
        return None if self._call is None else self._call.task_id

    @property
    def is_background_task(self) -> bool:
        """Whether the function runs as a task."""
        return self.task_id is not None

    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the call. A long-running function may check it from time to time."""
        return self._call is not None and self._call.is_cancelled()

    # Messages to the client ---------------------------------------------------------------------------------------

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports the progress of the call. Does nothing if the client did not ask for it."""
        self._require_call().progress(progress, total, message)

    async def log(self, level: LoggingLevel, data: Any, *, logger_name: str | None = None) -> None:
        """Sends a log message to the client: a text, or any value that JSON can represent."""
        from mcpace.server.calls.session import Session

        await Session(self).send_log_message(level, data, logger_name)

    async def debug(self, data: Any, *, logger_name: str | None = None) -> None:
        """Sends a log message of level ``debug``."""
        await self.log("debug", data, logger_name=logger_name)

    async def info(self, data: Any, *, logger_name: str | None = None) -> None:
        """Sends a log message of level ``info``."""
        await self.log("info", data, logger_name=logger_name)

    async def warning(self, data: Any, *, logger_name: str | None = None) -> None:
        """Sends a log message of level ``warning``."""
        await self.log("warning", data, logger_name=logger_name)

    async def error(self, data: Any, *, logger_name: str | None = None) -> None:
        """Sends a log message of level ``error``."""
        await self.log("error", data, logger_name=logger_name)

    async def elicit(self, message: str, schema: type[SchemaT]) -> ElicitationResult[SchemaT]:
        """Asks the user to fill in a form of a pydantic model with simple fields.

        The result's ``action`` is ``accept`` (then ``data`` is the model), ``decline`` or ``cancel``.
        """
        from mcpace.server.calls.elicitation import elicit

        return await elicit(self._require_call(), message, schema)

    async def elicit_url(self, message: str, url: str, elicitation_id: str) -> UrlElicitationResult:
        """Asks the user to visit a page, for data that must not pass through the client."""
        from mcpace.server.calls.elicitation import elicit_url

        return await elicit_url(self._require_call(), message, url, elicitation_id)

    async def begin_task(self, *, required: bool = True) -> bool:
        """Turns the call of a tool with ``task=TaskConfig(mode="on-demand")`` into a task. Returns whether it is one.

        The client receives the task as the answer at once. The function's value becomes the task's result, and its
        further questions belong to the task. A client that does not support tasks is refused if ``required``; otherwise
        the function continues as a call.
        """
        try:
            await self._require_call().begin_task()
        except Exception as error:
            is_undeclared = getattr(error, "kind", None) == "undeclared"
            if required or not (is_undeclared or getattr(error, "code", None) == MISSING_REQUIRED_CLIENT_CAPABILITY):
                raise
            return False
        return True

    async def read_resource(self, uri: Any) -> Iterable[ReadResourceContents]:
        """Reads one of the server's own resources."""
        result = await self.mcp_server.read_resource(str(uri), self.nested())
        if isinstance(result, InputRequiredResult):
            raise RuntimeError(
                "Resource returned InputRequiredResult; ctx.read_resource() only returns content: use "
                "MCPServer.read_resource(uri, context) to receive and forward it"
            )
        return result

    async def close_sse_stream(self) -> None:
        """Closes the client's stream while the call continues; the client reconnects for the result (2025-11-25)."""
        self._require_call().release()

    async def notify_tools_changed(self) -> None:
        """Notifies clients that the list of tools changed. Adding and removing tools does so automatically."""
        await self.mcp_server.notify_list_changed("tools")

    async def notify_prompts_changed(self) -> None:
        """Notifies clients that the list of prompts changed."""
        await self.mcp_server.notify_list_changed("prompts")

    async def notify_resources_changed(self) -> None:
        """Notifies clients that the list of resources changed."""
        await self.mcp_server.notify_list_changed("resources")

    async def notify_resource_updated(self, uri: Any) -> None:
        """Notifies the clients that subscribed to a resource that it changed."""
        await self.mcp_server.notify_resource_updated(str(uri))

    def is_of(self, server: Any) -> bool:
        """Whether the call belongs to ``server``."""
        return self._server is server

    # Within the package ------------------------------------------------------------------------------------------

    def nested(self) -> Context[LifespanT, RequestT]:
        """The context for another function within this request, which starts with its own first round."""
        return Context(call=self._call, server=self._server, method=self._method, nested=True)

    def within(self, surroundings: RequestContext[Any, Any]) -> Context[LifespanT, RequestT]:
        """A context of this call with the request context that middleware passed on."""
        context: Context[LifespanT, RequestT] = Context(
            call=self._call, server=self._server, method=surroundings.method
        )
        context._request_context = surroundings
        return context

    @property
    def call(self) -> Call | None:
        """The compiled part's interface to the call; ``None`` outside of a request."""
        return self._call

    def _require_call(self) -> Call:
        if self._call is None:
            raise ValueError(_OUTSIDE)
        return self._call

    def _new_request_context(self) -> RequestContext[LifespanT, RequestT]:
        from mcpace.server.calls.session import Session

        call = self._require_call()
        headers = call.headers
        return RequestContext(
            session=Session(self),
            lifespan_context=self.lifespan_context,
            protocol_version=call.revision,
            method=self._method,
            params=self.params,
            request_id=call.request_id,
            meta=self.meta,
            request=cast("RequestT", Request(headers, _client(call))) if headers else None,
        )


current: ContextVar[Context[Any, Any] | None] = ContextVar("mcpace_context", default=None)
"""The context of the current call, for ``server.get_context()``."""

ServerRequestContext = RequestContext
"""The official SDK's name of the class."""


def _client(call: Call) -> Address | None:
    connection = getattr(call, "connection", None)
    return None if connection is None or connection[0] is None else Address(*connection[0])


_OUTSIDE = "Context is not available outside of a request"
