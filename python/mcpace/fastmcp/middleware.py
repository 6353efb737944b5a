"""FastMCP's middleware, a class whose hooks wrap messages, implemented by the runtime's own middleware."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic_core import from_json

from mcpace.fastmcp.context import Context, current
from mcpace.fastmcp.tools import ToolResult
from mcpace.server.errors import is_protocol_error, is_tool_error
from mcpace.types import GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool, wire

if TYPE_CHECKING:
    from mcpace.fastmcp.app import FastMCP
    from mcpace.server.calls.context import RequestContext

MessageT = TypeVar("MessageT")
CallNext = Callable[["MiddlewareContext[Any]"], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class MiddlewareContext(Generic[MessageT]):
    """A message that passes through the middleware."""

    message: MessageT
    """The parameters of the request as attributes; for ``tools/call`` these are ``name`` and ``arguments``."""
    fastmcp_context: Context | None = None
    source: Literal["client", "server"] = "client"
    type: Literal["request", "notification"] = "request"
    method: str | None = None

    def copy(self, **changes: Any) -> MiddlewareContext[Any]:
        """A copy with changes, for ``call_next``."""
        return dataclasses.replace(self, **changes)


class Middleware:
    """Base class of middleware. A subclass overrides hooks, each of which calls ``await call_next(context)``."""

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Runs the hooks of a message, the general ones outermost."""
        chain = call_next
        hook = _HOOKS.get(context.method or "")
        for name in (hook, "on_request", "on_message"):
            if name is not None:
                chain = partial(getattr(self, name), call_next=chain)
        return await chain(context)

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps any message."""
        return await call_next(context)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps any request."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``tools/call``; returns a ``ToolResult``."""
        return await call_next(context)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``resources/read``."""
        return await call_next(context)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``prompts/get``."""
        return await call_next(context)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``tools/list``; returns the tools."""
        return await call_next(context)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``resources/list``; returns the resources."""
        return await call_next(context)

    async def on_list_resource_templates(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``resources/templates/list``; returns the templates."""
        return await call_next(context)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Wraps ``prompts/list``; returns the prompts."""
        return await call_next(context)


_HOOKS = {
    "tools/call": "on_call_tool",
    "resources/read": "on_read_resource",
    "prompts/get": "on_get_prompt",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "prompts/list": "on_list_prompts",
}
_LISTS: dict[str, tuple[str, Any]] = {
    "tools/list": ("tools", Tool),
    "resources/list": ("resources", Resource),
    "resources/templates/list": ("resourceTemplates", ResourceTemplate),
    "prompts/list": ("prompts", Prompt),
}
_RESULTS: dict[str, Any] = {
    "tools/call": ToolResult,
    "resources/read": ReadResourceResult,
    "prompts/get": GetPromptResult,
}


class Adapted:
    """Adapts a FastMCP middleware to the runtime's interface, ``async (surroundings, call_next)``."""

    def __init__(self, server: FastMCP, middleware: Any) -> None:
        self._server = server
        self.middleware = middleware

    async def __call__(self, surroundings: RequestContext[Any, Any], call_next: Any) -> Any:
        method, params = surroundings.method, dict(surroundings.params or {})
        if method == "tools/call":
            params.setdefault("arguments", {})
        message = SimpleNamespace(**params)

        async def inner(context: MiddlewareContext[Any]) -> Any:
            changed = dataclasses.replace(surroundings, params=_params(context.message))
            return _hook_result(method, await call_next(changed))

        context = MiddlewareContext(message=message, method=method, fastmcp_context=current.get(None))
        return _runtime_result(method, await self.middleware(context, inner))


async def catch_tool_errors(surroundings: RequestContext[Any, Any], call_next: Any) -> Any:
    """Turns a ``ToolError`` of middleware into a tool's result, as if the tool had raised it."""
    try:
        return await call_next(surroundings)
    except Exception as error:
        if surroundings.method != "tools/call" or is_protocol_error(error) or not is_tool_error(error):
            raise
        return ToolResult(content=str(error), is_error=True)


def _params(message: Any) -> dict[str, Any]:
    if isinstance(message, Mapping):
        return dict(message)
    return dict(vars(message))


def _hook_result(method: str, result: Any) -> Any:
    """A result in the form that hooks expect."""
    if isinstance(result, bytes):
        result = from_json(result)
    if method in _LISTS:
        member, kind = _LISTS[method]
        return [kind.model_validate(entry) for entry in wire(result)[member]]
    kind = _RESULTS.get(method)
    return result if kind is None else kind.model_validate(wire(result))


def _runtime_result(method: str, result: Any) -> Any:
    """A hook's return value in the form that the runtime expects."""
    if method in _LISTS:
        return {_LISTS[method][0]: [wire(entry) for entry in result]}
    return result
