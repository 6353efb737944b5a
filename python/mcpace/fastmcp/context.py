"""FastMCP's context: the runtime's, with state, and forms of any simple type."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter, create_model

from mcpace.server import context as plain
from mcpace.server.elicitation import AcceptedElicitation

if TYPE_CHECKING:
    from mcpace.fastmcp.app import FastMCP
    from mcpace.server.context import Call

MOST_SESSIONS = 10_000
"""Of so many sessions the state is kept; the one that was used least lately goes first."""

current: ContextVar[Context] = ContextVar("mcpace_fastmcp_context")


def get_context() -> Context:
    """The context of the current call. Raises ``RuntimeError`` outside of one."""
    try:
        return current.get()
    except LookupError:
        raise RuntimeError("No active context found.") from None


class Context(plain.Context[Any, Any]):
    """What a call knows and can do. A parameter annotated with it is filled in by the server."""

    __slots__ = ("_own_state",)

    def __init__(self, *, call: Call | None = None, server: Any = None, method: str = "", nested: bool = False) -> None:
        super().__init__(call=call, server=server, method=method, nested=nested)
        self._own_state: dict[str, Any] = {}

    @property
    def fastmcp(self) -> FastMCP:
        """The server."""
        return cast("FastMCP", self.mcp_server)

    @property
    def is_stateless(self) -> bool:
        """Whether what is kept by ``set_state`` goes with the call: there is no session."""
        return self._call is None or self._call.session_id is None

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        """Keeps a value for the session's later calls; without a session, or unserializable, for this call."""
        self._state(here=not serializable)[key] = value

    async def get_state(self, key: str) -> Any:
        """What was kept; ``None`` where there is nothing."""
        if key in self._own_state:
            return self._own_state[key]
        return self._state().get(key)

    async def delete_state(self, key: str) -> None:
        """Forgets what was kept."""
        self._own_state.pop(key, None)
        self._state().pop(key, None)

    async def elicit(self, message: str, response_type: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Asks the user. ``response_type``: nothing, a scalar, a list of choices, a dataclass, or a pydantic model.

        The answer's ``action`` is ``accept`` (then ``data`` is of that type), ``decline`` or ``cancel``.
        """
        if more:
            raise TypeError(f"elicit() takes no {', '.join(sorted(more))}")
        model, single = _form(response_type)
        answer = await super().elicit(message, model)
        if not isinstance(answer, AcceptedElicitation):
            return answer
        filled = answer.data.model_dump()
        if response_type is None:
            data: Any = {}
        elif single:
            data = filled["value"]
        else:
            data = TypeAdapter(response_type).validate_python(filled)
        return AcceptedElicitation[Any](data=data)

    def _state(self, here: bool = False) -> dict[str, Any]:
        session = None if self._call is None else self._call.session_id
        if here or session is None:
            return self._own_state
        return self.fastmcp.states.of(session)


class States:
    """What sessions keep."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._sessions: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def of(self, session: str) -> dict[str, Any]:
        """A session's state."""
        state = self._sessions.setdefault(session, {})
        self._sessions.move_to_end(session)
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return state


def _form(kind: Any) -> tuple[type[BaseModel], bool]:
    """A form for a type, and whether it has one field for the whole of it."""
    if kind is None:
        return create_model("Empty"), False
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, False
    if dataclasses.is_dataclass(kind):
        fields: dict[str, Any] = {}
        hints = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = ... if field.default is dataclasses.MISSING else field.default
            fields[field.name] = (hints[field.name], default)
        return create_model(getattr(kind, "__name__", "Form"), **fields), False
    if isinstance(kind, list):
        kind = Literal[tuple(kind)]
    return create_model("Value", value=(kind, ...)), True
