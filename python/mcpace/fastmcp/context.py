"""FastMCP's context: the runtime's context with state, forms of any simple type, and sampling."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, cast, get_type_hints
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic_core import PydanticSerializationError
from typing_extensions import is_typeddict

from mcpace.fastmcp.content import jsonable
from mcpace.server.app import MCPServer
from mcpace.server.calls import context as plain
from mcpace.server.calls.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcpace.server.errors import UnsupportedOption
from mcpace.types import MODERN, LoggingLevel, ModelHint, ModelPreferences, SamplingMessage, TextContent, wire

if TYPE_CHECKING:
    from mcpace.fastmcp.app import FastMCP
    from mcpace.server.calls.context import Call

MOST_SESSIONS = 10_000
"""Maximum number of sessions with kept state. The least recently used state is dropped first."""

current: ContextVar[Context] = ContextVar("mcpace_fastmcp_context")


def get_context() -> Context:
    """The context of the current call. Raises ``RuntimeError`` outside of one."""
    try:
        return current.get()
    except LookupError:
        raise RuntimeError("No active context found.") from None


class Context(plain.Context[Any, Any]):
    """The facts of a call, and its means of communicating with the client. The server fills in parameters with this
    annotation."""

    __slots__ = ("_own_state",)

    def __init__(self, *, call: Call | None = None, server: Any = None, method: str = "", nested: bool = False) -> None:
        super().__init__(call=call, server=server, method=method, nested=nested)
        self._own_state: dict[str, Any] = {}

    # Facts ------------------------------------------------------------------------------------------------------

    @property
    def fastmcp(self) -> FastMCP:
        """The server."""
        return cast("FastMCP", self.mcp_server)

    @property
    def transport(self) -> Literal["stdio", "streamable-http"] | None:
        """How the call came: HTTP has headers, stdio and memory have none. ``None`` outside of a request."""
        if self._call is None:
            return None
        return "streamable-http" if self._call.headers else "stdio"

    @property
    def session_id(self) -> str:
        """The id of the session; over stdio that of the process; without a session that of this request."""
        call = self._require_call()
        if call.session_id is not None:
            return call.session_id
        if call.revision < MODERN and not call.headers:
            return self.fastmcp.states.process
        return cast("str", self._own_state.setdefault(_REQUEST, str(uuid4())))

    @property
    def is_stateless(self) -> bool:
        """Whether there is no session, so that state lasts only for the call."""
        return self._session_key() is None

    @property
    def origin_request_id(self) -> str | None:
        """The request's id; ``None`` outside of one."""
        return None if self._call is None else self.request_id

    def client_supports_extension(self, extension_id: str) -> bool:
        """Whether the client declared an extension of the protocol."""
        declared = None if self._call is None else self.client_capabilities
        return extension_id in ((declared.extensions if declared else None) or {})

    # State -------------------------------------------------------------------------------------------------------

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        """Stores a JSON-serializable value for the session's later calls; ``serializable=False`` stores any value for
        this request only. Raises ``TypeError`` for a value that isn't serializable."""
        if not serializable:
            self._own_state[key] = value
            return
        try:
            kept = jsonable(value)
        except PydanticSerializationError as error:
            raise TypeError(
                f"Value for state key {key!r} is not serializable. Use set_state({key!r}, value, serializable=False) "
                "to store non-serializable values. Note: non-serializable state is request-scoped and will not "
                "persist across requests."
            ) from error
        self._own_state.pop(key, None)
        self._state()[key] = kept

    async def get_state(self, key: str) -> Any:
        """A stored value; ``None`` where there is none."""
        if key in self._own_state:
            return self._own_state[key]
        return self._state().get(key)

    async def delete_state(self, key: str) -> None:
        """Deletes a stored value."""
        self._own_state.pop(key, None)
        self._state().pop(key, None)

    # Messages to the client --------------------------------------------------------------------------------------

    async def log(  # type: ignore[override]
        self,
        message: str,
        level: LoggingLevel | None = None,
        logger_name: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Sends a log message: ``{"msg": message, "extra": extra}``."""
        data = {"msg": message, "extra": extra if extra is None else dict(extra)}
        await super().log(level or "info", data, logger_name=logger_name)

    async def debug(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Sends a log message of level ``debug``."""
        await self.log(message, "debug", logger_name, extra)

    async def info(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Sends a log message of level ``info``."""
        await self.log(message, "info", logger_name, extra)

    async def warning(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Sends a log message of level ``warning``."""
        await self.log(message, "warning", logger_name, extra)

    async def error(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Sends a log message of level ``error``."""
        await self.log(message, "error", logger_name, extra)

    # Questions to the client -------------------------------------------------------------------------------------

    async def elicit(
        self,
        message: str,
        response_type: Any = None,
        *,
        response_title: str | None = None,
        response_description: str | None = None,
    ) -> Any:
        """Asks the user. ``response_type``: a scalar, choices, a dataclass, or a pydantic model.

        Choices are ``["a", "b"]`` or ``{"a": {"title": "A"}}``; a list around either allows several. The answer's
        ``action`` is ``accept`` (``data`` is of that type then), ``decline`` or ``cancel``.
        """
        told = {"title": response_title, "description": response_description}
        label = {key: text for key, text in told.items() if text is not None}
        if isinstance(response_type, dict) or _is_choice_of_several(response_type):
            return await self._choose(message, response_type, label)
        model, single = _form(response_type, label)
        answer = await super().elicit(message, model)
        if not isinstance(answer, AcceptedElicitation):
            return answer
        if response_type is None:
            return AcceptedElicitation[Any](data={})
        if single:
            return AcceptedElicitation[Any](data=cast("Any", answer.data).value)
        if isinstance(response_type, type) and issubclass(response_type, BaseModel):
            return AcceptedElicitation[Any](data=answer.data)
        return AcceptedElicitation[Any](data=TypeAdapter(response_type).validate_python(answer.data.model_dump()))

    async def sample(
        self,
        messages: str | Sequence[str | SamplingMessage],
        *,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: Any = None,
        **more: Any,
    ) -> SamplingResult:
        """Asks the client's model: the protocol's sampling, as FastMCP 3 had it. FastMCP 4 has no ``sample``."""
        if more:
            raise UnsupportedOption(
                f"sample() has no {', '.join(sorted(more))}: call ctx.session.create_message(…), which has the "
                "protocol's own options, or a model's API from the tool"
            )
        given = [messages] if isinstance(messages, str) else list(messages)
        asked = [
            SamplingMessage(role="user", content=TextContent(text=one)) if isinstance(one, str) else one
            for one in given
        ]
        answer = await self.session.create_message(
            asked,
            max_tokens=512 if max_tokens is None else max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            model_preferences=_preferences(model_preferences),
        )
        history = [*asked, SamplingMessage(role=answer.role, content=answer.content)]
        text = getattr(answer.content, "text", None)
        return SamplingResult(text=text, result=answer.content if text is None else text, history=history)

    # The server's own --------------------------------------------------------------------------------------------

    async def list_resources(self) -> list[Any]:
        """The server's resources."""
        return await self.fastmcp.list_resources()

    async def list_prompts(self) -> list[Any]:
        """The server's prompts."""
        return await self.fastmcp.list_prompts()

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """One of the server's prompts, rendered."""
        return await MCPServer.get_prompt(self.fastmcp, name, arguments, self.nested())

    async def read_resource(self, uri: Any) -> Any:
        """One of the server's resources, as a ``ResourceResult``."""
        return await self.fastmcp.read_resource(str(uri), self.nested())

    async def send_notification(self, notification: Any) -> None:
        """Sends a notification of the protocol: changed lists, an updated resource, progress, a log message."""
        told = wire(notification)
        method, params = told.get("method", ""), told.get("params") or {}
        if method.endswith("/list_changed"):
            await self.fastmcp.notify_list_changed(method.split("/")[1])
        elif method == "notifications/resources/updated":
            await self.notify_resource_updated(params["uri"])
        elif method == "notifications/message":
            await plain.Context.log(self, params["level"], params.get("data"), logger_name=params.get("logger"))
        else:
            raise UnsupportedOption(f"send_notification() of {method!r}: use ctx.report_progress or ctx.log")

    async def enable_components(self, **_: Any) -> None:
        """Raises ``UnsupportedOption``: the visible components of a single session can't be changed."""
        raise UnsupportedOption(VISIBILITY)

    disable_components = enable_components
    reset_visibility = enable_components

    # Within the package ------------------------------------------------------------------------------------------

    def nested(self) -> Context:
        """A context for another function within this request, whose questions to the client start a first round of
        their own."""
        return self._copy_with(nested=True)

    def within(self, surroundings: plain.RequestContext[Any, Any]) -> Context:
        """The context of this call with the request context that middleware passed on."""
        context = self._copy_with(method=surroundings.method)
        context._request_context = surroundings
        return context

    def _copy_with(self, method: str | None = None, nested: bool = False) -> Context:
        context = Context(
            call=self._call, server=self._server, method=self._method if method is None else method, nested=nested
        )
        context._own_state = self._own_state
        return context

    async def _choose(self, message: str, choices: Any, label: dict[str, str]) -> Any:
        several = isinstance(choices, list)
        options = choices[0] if several else choices
        if not options:
            raise ValueError("elicit() needs at least one choice")
        titled = isinstance(options, dict)
        named = [{"const": key, "title": (options[key] or {}).get("title", key)} for key in options] if titled else []
        one: dict[str, Any] = {"oneOf": named} if titled else {"enum": list(options)}
        value = {"type": "array", "items": {"anyOf": named} if titled else one} if several else {"type": "string"} | one
        form = {"type": "object", "properties": {"value": value | label}, "required": ["value"]}
        answer = await self.session.elicit_form(message, form)
        if answer.action != "accept":
            return DeclinedElicitation() if answer.action == "decline" else CancelledElicitation()
        kind: Any = Literal[tuple(options)]
        chosen = TypeAdapter(list[kind] if several else kind).validate_python((answer.content or {}).get("value"))
        return AcceptedElicitation[Any](data=chosen)

    def _session_key(self) -> str | None:
        call = self._call
        if call is None or call.session_id is not None:
            return None if call is None else call.session_id
        return self.fastmcp.states.process if call.revision < MODERN and not call.headers else None

    def _state(self) -> dict[str, Any]:
        session = self._session_key()
        return self._own_state if session is None else self.fastmcp.states.of(session)


_REQUEST = "mcpace: id of this request"
VISIBILITY = (
    "What one session sees can't be changed: give tools auth= checks, which decide for each caller, or use "
    "mcp.enable() and mcp.disable() for all"
)


@dataclasses.dataclass(frozen=True)
class SamplingResult:
    """The answer of the client's model."""

    text: str | None
    """The answer's text; ``None`` for an image or audio."""
    result: Any
    """The text, or the content block."""
    history: list[SamplingMessage]
    """The messages, including the answer."""


class States:
    """The state of all sessions."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self.process = str(uuid4())
        """Id of the only session that a process has over stdio."""
        self._most = most
        self._sessions: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def of(self, session: str) -> dict[str, Any]:
        """The state of a session."""
        state = self._sessions.setdefault(session, {})
        self._sessions.move_to_end(session)
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return state


def _preferences(given: Any) -> ModelPreferences | None:
    if given is None or isinstance(given, ModelPreferences):
        return given
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list):
        return ModelPreferences(hints=[ModelHint(name=name) for name in names])
    return ModelPreferences.model_validate(given)


def _is_choice_of_several(kind: Any) -> bool:
    return isinstance(kind, list) and len(kind) == 1 and isinstance(kind[0], list | dict)


def _form(kind: Any, label: Mapping[str, str]) -> tuple[type[BaseModel], bool]:
    """A form for a type, and whether a single field of the form holds the whole value."""
    if kind is None:
        return create_model("Empty"), False
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    if (is_model or dataclasses.is_dataclass(kind) or is_typeddict(kind)) and label:
        raise TypeError("response_title and response_description are for scalars and choices; use Field(title=…)")
    if is_model:
        return kind, False
    if dataclasses.is_dataclass(kind):
        fields: dict[str, Any] = {}
        hints = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = ... if field.default is dataclasses.MISSING else field.default
            fields[field.name] = (hints[field.name], default)
        name, words = getattr(kind, "__name__", "Form"), kind.__doc__ or ""
        # The generated docstring of a dataclass is its signature.
        return create_model(name, __doc__=None if words.startswith(f"{name}(") else words, **fields), False
    if is_typeddict(kind):
        fields = {
            name: (hint, ... if name in kind.__required_keys__ else None)
            for name, hint in get_type_hints(kind, include_extras=True).items()
        }
        return create_model(kind.__name__, **fields), False
    if isinstance(kind, list):
        kind = Literal[tuple(kind)]
    return create_model("Value", __config__=_UNTITLED, value=(kind, Field(**cast("Any", label)))), True


def _drop_title(schema: dict[str, Any]) -> None:
    schema.pop("title", None)


_UNTITLED = ConfigDict(json_schema_extra=_drop_title)
"""The schema of a single value has no title of its own, as in FastMCP."""
