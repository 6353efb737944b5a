"""From definitions to what the compiled part calls: for each, the quickest handler that does what was asked for.

A plain tool's function is handed over bare. Only where something has to happen around it (an injected value, a token to
remember, middleware) is it wrapped; whoever has none of that pays for none.

Design constraint: a handler is a plain description (:class:`Plan`), so that it can be looked at and tested without the
compiled part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import from_json, to_json

from mcpace.server.auth import forget, remember
from mcpace.server.context import Context
from mcpace.server.errors import (
    InputRequired,
    ResourceError,
    is_protocol_error,
    log_tool_failure,
    logger,
    of_tool,
    resource_answer,
)
from mcpace.server.serving import completion_json, prompt_json, resource_json, run_middleware
from mcpace.server.serving import prompt_failure as prompt_answer
from mcpace.server.signature import is_async
from mcpace.types import INTERNAL_ERROR, wire

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.app import MCPServer
    from mcpace.server.prompts import Prompt
    from mcpace.server.resources import ResourceTemplate
    from mcpace.server.tools import Tool

Answer = bytes | tuple[Any, ...]
"""A whole result, ``(code, message, data)`` of a protocol error, or ``(requests, state)`` of a round's questions."""

_CALL = "_call"  # No parameter of an author's begins with an underscore.


@dataclass(frozen=True, slots=True)
class Plan:
    """How one entry is called: the keywords of ``_core.Handler``."""

    function: Callable[..., Any]
    kind: Literal["sync", "async"]
    validate: Callable[[bytes], dict[str, Any]] | None
    context: str | None
    wrap_context: Callable[[Any], Any] | None
    output: Literal["text", "wrapped-text", "custom", "finished"]
    finish: Callable[[Any], bytes] | None
    fail: Callable[[BaseException], Answer]

    def handler(self) -> _core.Handler:
        """For the compiled part."""
        from mcpace import _core

        return _core.Handler(
            self.function,
            kind=self.kind,
            validate=self.validate,
            context=self.context,
            wrap_context=self.wrap_context,
            output=self.output,
            finish=self.finish,
            fail=self.fail,
        )


def tool_plan(server: MCPServer[Any], tool: Tool) -> Plan:
    """How a tool is called."""
    if server.is_wrapped("tools/call"):
        return _wrapped(server, "tools/call", {"name": tool.name})

    function, kind = tool.fn, tool.is_async
    context, wrap = tool.context_kwarg, _contexts(server, "tools/call")
    if tool.resolved:
        function, kind, context = _resolving(server, tool), True, _CALL
    elif server.remembers_principals:
        function, context = _remembering(server, tool), _CALL
    return Plan(
        function=function,
        kind="async" if kind else "sync",
        validate=tool.arguments.validate_json if tool.arguments.parameters else None,
        context=context,
        wrap_context=None if context is None or context == _CALL else wrap,
        output=tool.output.kind,
        finish=tool.output.finish,
        fail=tool_failure(tool.name),
    )


def resource_plan(server: MCPServer[Any], resource: Any) -> Plan:
    """How a resource is read."""
    uri = str(resource.uri)
    if server.is_wrapped("resources/read"):
        return _wrapped(server, "resources/read", {"uri": uri})

    async def read(*, _call: Any) -> bytes:
        remember(_call.principal)
        return await resource_json(server, uri, Context(call=_call, server=server, method="resources/read"))

    return _finished(read, None, resource_failure(uri))


def template_plan(server: MCPServer[Any], template: ResourceTemplate) -> Plan:
    """How a family's resources are read. The arguments are ``{"uri": …}``."""
    del template
    if server.is_wrapped("resources/read"):
        return _wrapped(server, "resources/read", {})

    async def read(*, _call: Any, uri: str) -> bytes:
        remember(_call.principal)
        context: Context[Any, Any] = Context(call=_call, server=server, method="resources/read")
        return await resource_json(server, uri, context)

    return _finished(read, from_json, resource_failure(None))


def prompt_plan(server: MCPServer[Any], prompt: Prompt) -> Plan:
    """How a prompt is filled in."""
    if server.is_wrapped("prompts/get"):
        return _wrapped(server, "prompts/get", {"name": prompt.name})

    async def render(*, _call: Any, _arguments: dict[str, Any]) -> bytes:
        remember(_call.principal)
        context: Context[Any, Any] = Context(call=_call, server=server, method="prompts/get")
        return await prompt_json(prompt, _arguments, context)

    return _finished(render, _as_arguments, prompt_failure(prompt))


def completion_plan(server: MCPServer[Any]) -> Plan:
    """How proposals are made. The arguments are the request's params."""
    if server.is_wrapped("completion/complete"):
        return _wrapped(server, "completion/complete", None)

    async def complete(*, _call: Any, _arguments: dict[str, Any]) -> bytes:
        remember(_call.principal)
        return await completion_json(server, _arguments)

    return _finished(complete, _as_arguments, plain_failure("completion/complete"))


def tool_failure(name: str) -> Callable[[BaseException], Answer]:
    """What a tool's exception is answered with. A crash is logged with its traceback and told by the tool's name."""

    def fail(error: BaseException) -> Answer:
        told = of_tool(name, error)
        known = protocol_answer(told)
        if known is not None:
            return known
        log_tool_failure(name, told)
        return b'{"content":[{"type":"text","text":' + to_json(_encodable(str(told))) + b'}],"isError":true}'

    return fail


def resource_failure(uri: str | None) -> Callable[[BaseException], Answer]:
    """What an exception of a reading is answered with."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        if isinstance(error, ResourceError):
            return error_answer(resource_answer(getattr(error, "uri", None) or uri or "", error))
        return plain_failure("resources/read")(error)

    return fail


def prompt_failure(prompt: Prompt) -> Callable[[BaseException], Answer]:
    """What an exception of a prompt is answered with: the name of the prompt, or of what is missing."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        code, message = prompt_answer(prompt.name, error)
        if code == INTERNAL_ERROR:
            logger.error("Prompt %r raised an unexpected exception", prompt.name, exc_info=error)
        return (code, message, None)

    return fail


def plain_failure(method: str) -> Callable[[BaseException], Answer]:
    """What an exception is answered with that nobody saw coming: nothing of it is told."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        logger.error("%s raised an unexpected exception", method, exc_info=error)
        return (INTERNAL_ERROR, "Internal server error", None)

    return fail


def protocol_answer(error: BaseException) -> Answer | None:
    """The answer that a protocol error or a round's questions are; ``None`` for anything else."""
    if isinstance(error, InputRequired):
        requests = {key: wire(request) for key, request in (error.result.input_requests or {}).items()}
        return (to_json(requests).decode(), error.result.request_state)
    return error_answer(error) if is_protocol_error(error) else None


def error_answer(error: Any) -> tuple[int, str, str | None]:
    """A protocol error, ours or the official SDK's, as the compiled part takes it."""
    data = error.error.data
    return (error.error.code, error.error.message, None if data is None else to_json(data, fallback=str).decode())


def _contexts(server: MCPServer[Any], method: str) -> Callable[[Any], Context[Any, Any]]:
    def wrap(call: Any) -> Context[Any, Any]:
        return Context(call=call, server=server, method=method)

    return wrap


def _resolving(server: MCPServer[Any], tool: Tool) -> Callable[..., Any]:
    async def call(*, _call: Any, **keywords: Any) -> Any:
        remember(_call.principal)
        return await tool.call(keywords, Context(call=_call, server=server, method="tools/call"))

    return call


def _remembering(server: MCPServer[Any], tool: Tool) -> Callable[..., Any]:
    """The function, with the call's token where ``get_access_token`` finds it."""
    keyword, function = tool.context_kwarg, tool.fn

    async def call_async(*, _call: Any, **keywords: Any) -> Any:
        remember(_call.principal)  # The task has a context of its own.
        if keyword is not None:
            keywords[keyword] = Context(call=_call, server=server, method="tools/call")
        return await function(**keywords)

    def call(*, _call: Any, **keywords: Any) -> Any:
        remembered = remember(_call.principal)
        if keyword is not None:
            keywords[keyword] = Context(call=_call, server=server, method="tools/call")
        try:
            return function(**keywords)
        finally:
            forget(remembered)

    return call_async if tool.is_async else call


def _wrapped(server: MCPServer[Any], method: str, known: Mapping[str, Any] | None) -> Plan:
    """Through middleware: what is sent arrives there as it came, and is validated after it."""

    async def run(*, _call: Any, _arguments: Any) -> bytes:
        remember(_call.principal)
        if known is None or "uri" in _arguments:
            params = _arguments
        elif method == "resources/read":
            params = dict(known)
        else:
            params = {**known, "arguments": _arguments}
        return await run_middleware(server, method, params, _call)

    return _finished(run, _as_arguments, plain_failure(method))


def _finished(
    function: Callable[..., Any], validate: Callable[[bytes], dict[str, Any]] | None, fail: Callable[..., Answer]
) -> Plan:
    kind: Literal["sync", "async"] = "async" if is_async(function) else "sync"
    return Plan(function, kind, validate, _CALL, None, "finished", None, fail)


def _as_arguments(raw: bytes) -> dict[str, Any]:
    return {"_arguments": from_json(raw)}


def _encodable(text: str) -> str:
    """Without lone surrogates, which JSON can't carry as UTF-8."""
    return text.encode(errors="replace").decode()
