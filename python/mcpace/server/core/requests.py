"""Requests that Python answers: reading a resource, rendering a prompt, proposing completions, and wrapped calls.

Design constraint: the same code answers a client, a test that calls the server in its own process, and a function that
reads a resource of its own server.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mcpace.server.calls.context import Context, ReadResourceContents, RequestContext
from mcpace.server.calls.invocation import call_function
from mcpace.server.core.failures import prompt_error
from mcpace.server.errors import (
    InputRequired,
    MCPError,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    is_protocol_error,
    log_tool_failure,
    logger,
    resource_answer,
)
from mcpace.server.registration.output import result_json
from mcpace.server.registration.prompts import messages_json
from mcpace.server.registration.resources import Contents, contents_json, read_resource
from mcpace.server.registration.signature import is_async
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    InputRequiredResult,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
)

if TYPE_CHECKING:
    from mcpace.server.core.core_binding import CoreBinding
    from mcpace.server.core.registry import Registry
    from mcpace.server.registration.prompts import Prompt


async def read_contents(registry: Registry, uri: str, context: Context[Any, Any]) -> list[ReadResourceContents] | Any:
    """A resource's contents, or the ``InputRequiredResult`` of a template's function.

    Raises ``ResourceNotFoundError`` where there is none of this URI, ``ResourceError`` where reading fails.
    """
    resource = registry.resources.get(uri)
    if resource is not None:
        return _contents_list(await read_resource(resource), resource)
    for template in registry.templates.values():
        values = template.matches(uri)
        if values is not None:
            result = await template.read(uri, values, context)
            if isinstance(result, InputRequiredResult):
                return result
            return _contents_list(result, template)
    raise ResourceNotFoundError(f"Unknown resource: {uri}")


def _contents_list(content: str | bytes | Contents, entry: Any) -> list[ReadResourceContents]:
    if isinstance(content, Contents):
        return content
    return [ReadResourceContents(content, entry.mime_type, entry.meta)]


def contents_length(uri: str, contents: Any) -> int:
    """The length in bytes of a resource's contents, as a client gets them; 0 for questions to the client."""
    if isinstance(contents, InputRequiredResult):
        return 0
    return len(contents_json(uri, contents)) - len(b"{}")


async def resource_json(registry: Registry, uri: str, context: Context[Any, Any]) -> bytes:
    """A resource, as a client gets it. Raises protocol errors, and ``InputRequired``."""
    try:
        contents = await read_contents(registry, uri, context)
    except ResourceError as error:
        raise resource_answer(uri, error) from error
    if isinstance(contents, InputRequiredResult):
        raise InputRequired(contents)
    return contents_json(uri, contents)


async def prompt_json(prompt: Prompt, arguments: Mapping[str, Any] | None, context: Context[Any, Any]) -> bytes:
    """A prompt, as a client gets it."""
    rendered = await prompt.render(arguments, context)
    if isinstance(rendered, InputRequiredResult):
        raise InputRequired(rendered)
    return messages_json(prompt.description, rendered)


async def completion_json(registry: Registry, params: Mapping[str, Any]) -> bytes:
    """Proposed completions, as a client gets them: the members of ``completion``."""
    function = registry.completion
    if function is None:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", "completion/complete")
    argument = CompletionArgument.model_validate(params["argument"])
    try:
        proposed = await call_function(partial(function, *_completion_arguments(params)), is_async(function), {})
    except Exception as error:
        if is_protocol_error(error):
            raise
        logger.error("Completion for argument %r raised an unexpected exception", argument.name, exc_info=error)
        raise MCPError(INTERNAL_ERROR, f"Error completing argument {argument.name}") from error
    completion = Completion(values=[]) if proposed is None else Completion.model_validate(_completion_members(proposed))
    return to_json(completion.model_dump(mode="json", by_alias=True, exclude_none=True))


async def run_middleware(binding: CoreBinding, context: Context[Any, Any]) -> bytes:
    """Passes a request through the server's middleware, outermost first. Returns the result as JSON."""

    async def innermost(surroundings: RequestContext[Any, Any]) -> Any:
        return await _answer_request(binding, surroundings, context.within(surroundings))

    chain: Any = innermost
    for middleware in reversed(binding.server.middleware):
        chain = _wrapped_by(middleware, chain)
    return _as_json(await chain(context.request_context))


def _wrapped_by(middleware: Any, call_next: Any) -> Any:
    async def run(surroundings: RequestContext[Any, Any]) -> Any:
        return await middleware(surroundings, call_next)

    return run


async def _answer_request(
    binding: CoreBinding, surroundings: RequestContext[Any, Any], context: Context[Any, Any]
) -> Any:
    """Answers a request inside the innermost middleware."""
    params = surroundings.params or {}
    if surroundings.method == "tools/call":
        return await _call_tool(binding, params, surroundings, context)
    if surroundings.method == "resources/read":
        return await resource_json(binding.registry, str(params.get("uri", "")), context)
    if surroundings.method == "prompts/get":
        prompt = binding.registry.prompts.get(str(params.get("name")))
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.get('name')}")
        try:
            return await prompt_json(prompt, params.get("arguments"), context)
        except ValueError as error:
            code, message = prompt_error(prompt.name, error)
            if code == INTERNAL_ERROR:
                logger.error("Prompt %r raised an unexpected exception", prompt.name, exc_info=error)
            raise MCPError(code, message) from error
    if surroundings.method.endswith("/list"):
        from mcpace.server.core.list_requests import exchange_of, listed

        principal, exchange = None if context.call is None else context.call.principal, exchange_of(context.call)
        return await listed(binding, surroundings.method, surroundings.protocol_version, principal, exchange)
    if surroundings.method == "completion/complete":
        return await completion_json(binding.registry, params)
    raise MCPError(METHOD_NOT_FOUND, "Method not found", surroundings.method)


async def _call_tool(
    binding: CoreBinding,
    params: Mapping[str, Any],
    surroundings: RequestContext[Any, Any],
    context: Context[Any, Any],
) -> Any:
    async def run(_: Any) -> Any:
        name = str(params.get("name"))
        try:
            return await binding.server.call_tool(name, params.get("arguments") or {}, context)
        except ToolError as error:
            log_tool_failure(name, error)
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)

    chain: Any = run
    for extension in reversed(binding.interceptors):
        chain = _intercepted_by(extension, ToolCall(params), chain)
    return await chain(surroundings)


class ToolCall:
    """A tool call, as an extension's hook receives it."""

    __slots__ = ("arguments", "meta", "name")

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.name: str = params["name"]
        self.arguments: dict[str, Any] | None = params.get("arguments")
        self.meta: dict[str, Any] | None = params.get("_meta")


def _intercepted_by(extension: Any, params: ToolCall, call_next: Any) -> Any:
    async def run(surroundings: RequestContext[Any, Any]) -> Any:
        return await extension.intercept_tool_call(params, surroundings, call_next)

    return run


def _as_json(result: Any) -> bytes:
    if isinstance(result, bytes):
        return result
    if hasattr(result, "input_requests"):
        raise InputRequired(InputRequiredResult.model_validate(result))
    if hasattr(result, "model_dump_json"):
        return result_json(result)
    return to_json({} if result is None else result)


def _completion_arguments(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a completion function: ``(ref, argument, context)``."""
    reference, context = params["ref"], params.get("context")
    kind = PromptReference if reference.get("type") == "ref/prompt" else ResourceTemplateReference
    return (
        shared(kind.model_validate(reference)),
        shared(CompletionArgument.model_validate(params["argument"])),
        None if context is None else shared(CompletionContext.model_validate(context)),
    )


def _completion_members(proposed: Any) -> Any:
    return {"values": list(proposed)} if isinstance(proposed, list | tuple) else proposed
