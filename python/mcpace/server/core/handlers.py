"""Handlers: for each registered component, the fastest function that the compiled part can call for it.

A plain tool's function is passed on unwrapped. It is wrapped only if something has to happen around it: an injected
value, a token to remember, middleware. Tools without these do not pay for them.

Design constraint: a handler is a plain description (:class:`HandlerPlan`), so that it can be inspected and tested
without the compiled part. Modules for resources and prompts are loaded with the first resource or prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import from_json

from mcpace.server.calls.context import Context
from mcpace.server.calls.invocation import call_function
from mcpace.server.core.failures import Answer, plain_failure, prompt_failure, resource_failure, tool_failure
from mcpace.server.registration.context_use_scan import find_names

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.core.core_binding import CoreBinding
    from mcpace.server.registration.output import Data, PlainValue
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.tools import Tool

_WAYS = frozenset({"get_context"})
"""Names by which a function finds its context without a parameter."""
_FROM_THREAD = frozenset({"from_thread"})
"""Names by which a function in a thread calls into the event loop. This works in anyio's own threads only."""
_CONTEXT = "_context"  # Parameters of authors' functions never begin with an underscore.


@dataclass(frozen=True, slots=True)
class HandlerPlan:
    """How one entry is called: the keywords of ``_core.Handler``."""

    function: Callable[..., Any]
    kind: Literal["sync", "async"]
    validate: Callable[[bytes], dict[str, Any]] | None
    context: str | None
    wrap_context: Callable[[Any], Any] | None
    output: Literal["text", "wrapped-text", "structured", "custom", "finished"]
    finish: Callable[[Any], bytes | Data] | None
    fail: Callable[[BaseException], Answer]
    fast_path: Callable[[bytes], dict[str, Any]] | None = None
    """A faster validator with the same result, which the compiled part tries before ``validate``."""
    plain: PlainValue | None = None
    """The values that the compiled part writes itself, with the same result as ``finish``."""

    def handler(self) -> _core.Handler:
        """The handler that the compiled part calls."""
        from mcpace import _core

        return _core.Handler(
            self.function,
            kind=self.kind,
            validate=self.validate,
            fast_path=self.fast_path,
            context=self.context,
            wrap_context=self.wrap_context,
            output=self.output,
            finish=self.finish,
            plain=self.plain,
            fail=self.fail,
        )


def tool_plan(binding: CoreBinding, tool: Tool) -> HandlerPlan:
    """How a tool is called."""
    if binding.is_wrapped("tools/call"):
        return _middleware_plan(binding, "tools/call")
    plan: Callable[[Any], HandlerPlan] | None = getattr(tool, "plan", None)
    if plan is not None:
        # Tools of mcpace.fastmcp and mcpace.django make their own plans.
        return plan(binding.server)

    function, kind, context = tool.fn, tool.is_async, tool.context_kwarg
    if tool.resolved:
        function, kind, context = _with_resolvers(tool), True, _CONTEXT
    elif not kind and find_names(tool.fn, _FROM_THREAD):
        function, kind = _in_thread(tool.fn), True
    is_structured = tool.output.kind == "structured"
    is_bare = context is None and not (binding.has_principals or find_names(tool.fn, _WAYS))
    return HandlerPlan(
        function=function,
        kind="async" if kind else "sync",
        validate=tool.arguments.validate_json if tool.arguments.parameters else None,
        context=context,
        wrap_context=None if is_bare else binding.context_factory("tools/call"),
        output=tool.output.kind,
        finish=tool.output.data if is_structured else tool.output.finish,
        fail=tool_failure(tool.name),
        fast_path=tool.arguments.fast_path if tool.arguments.parameters else None,
        plain=tool.output.plain_value if is_structured else None,
    )


def resource_plan(binding: CoreBinding, uri: str | None) -> HandlerPlan:
    """How a resource is read. Without ``uri``, the plan is a template's, and the client's request names the
    resource."""
    if binding.is_wrapped("resources/read"):
        return _middleware_plan(binding, "resources/read")
    from mcpace.server.core.requests import resource_json

    async def read(*, _context: Context[Any, Any]) -> bytes:
        return await resource_json(binding.registry, uri or _context.params["uri"], _context)

    return _finished_plan(binding, "resources/read", read, resource_failure(uri))


def prompt_plan(binding: CoreBinding, prompt: Prompt) -> HandlerPlan:
    """How a prompt is rendered."""
    if binding.is_wrapped("prompts/get"):
        return _middleware_plan(binding, "prompts/get")
    from mcpace.server.core.requests import prompt_json

    async def render(*, _context: Context[Any, Any], _arguments: dict[str, Any]) -> bytes:
        return await prompt_json(prompt, _arguments, _context)

    return _finished_plan(binding, "prompts/get", render, prompt_failure(prompt), _as_arguments)


def completion_plan(binding: CoreBinding) -> HandlerPlan:
    """How completions are proposed."""
    if binding.is_wrapped("completion/complete"):
        return _middleware_plan(binding, "completion/complete")
    from mcpace.server.core.requests import completion_json

    async def complete(*, _context: Context[Any, Any]) -> bytes:
        return await completion_json(binding.registry, _context.params)

    return _finished_plan(binding, "completion/complete", complete, plain_failure("completion/complete"))


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(**keywords: Any) -> Any:
        return await call_function(function, False, keywords)

    return call


def _with_resolvers(tool: Tool) -> Callable[..., Any]:
    async def call(*, _context: Context[Any, Any], **keywords: Any) -> Any:
        return await tool.call(keywords, _context)

    return call


def _middleware_plan(binding: CoreBinding, method: str) -> HandlerPlan:
    """The plan of a method that middleware wraps. Middleware receives the request as it was sent, before validation."""
    from mcpace.server.core.requests import run_middleware

    async def run(*, _context: Context[Any, Any]) -> bytes:
        return await run_middleware(binding, _context)

    return _finished_plan(binding, method, run, plain_failure(method))


def _finished_plan(
    binding: CoreBinding,
    method: str,
    function: Callable[..., Any],
    fail: Callable[[BaseException], Answer],
    validate: Callable[[bytes], dict[str, Any]] | None = None,
) -> HandlerPlan:
    return HandlerPlan(function, "async", validate, _CONTEXT, binding.context_factory(method), "finished", None, fail)


def _as_arguments(raw: bytes) -> dict[str, Any]:
    return {"_arguments": from_json(raw)}
