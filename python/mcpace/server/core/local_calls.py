"""Calls within the process: for tests, and for programs that use their own server.

A call without a ``principal`` is the server's own call: it is trusted, and no guard applies. A call on behalf of a
``principal`` meets what that caller's client would meet. The compiled part applies permissions and rate limits, and
counts these uses together with those of clients. Arguments are validated as if a client had sent them, and the result
is what a client would read.

The function runs where the call was made. A synchronous call of a plain function runs on the calling thread, so that
state of the thread, such as a transaction, is visible to the function.

Design constraint: a call on behalf of a principal runs the same plans as the compiled part; a trusted call loads
nothing of it. Functions cannot ask the client anything, since there is none.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from mcpace.server.auth.principal import TRUSTED, checked_principal, remember
from mcpace.server.calls.content import failure_json, text_json
from mcpace.server.calls.context import Context, ReadResourceContents
from mcpace.server.calls.invocation import call_function
from mcpace.server.core.failures import Answer
from mcpace.server.core.handlers import HandlerPlan
from mcpace.server.errors import MCPError, ToolError, is_protocol_error
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    MODERN,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    PromptMessage,
    wire,
)
from mcpace.types import Prompt as ListedPrompt
from mcpace.types import Resource as ListedResource
from mcpace.types import ResourceTemplate as ListedTemplate
from mcpace.types import Tool as ListedTool

if TYPE_CHECKING:
    from mcpace.server.auth.guards import Guards, Kind
    from mcpace.server.core.core_binding import CoreBinding
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.tools import Tool

ValueT = TypeVar("ValueT")


class LocalCalls:
    """Answers requests of the server's own process; ``MCPServer`` documents each method."""

    def __init__(self, binding: CoreBinding) -> None:
        self._binding = binding
        self._registry = binding.registry

    async def list_tools(self, principal: Any) -> list[ListedTool]:
        """The tools that a caller may see."""
        tools = await self._visible("tool", self._registry.tools, principal)
        return [shared(ListedTool.model_validate(tool.listed())) for tool in tools]

    async def list_resources(self, principal: Any) -> list[ListedResource]:
        """The resources that a caller may see."""
        from mcpace.server.registration.resources import listed_resource

        resources = await self._visible("resource", self._registry.resources, principal)
        return [shared(ListedResource.model_validate(listed_resource(one))) for one in resources]

    async def list_resource_templates(self, principal: Any) -> list[ListedTemplate]:
        """The resource templates that a caller may see."""
        templates = await self._visible("template", self._registry.templates, principal)
        return [shared(ListedTemplate.model_validate(one.listed())) for one in templates]

    async def list_prompts(self, principal: Any) -> list[ListedPrompt]:
        """The prompts that a caller may see."""
        prompts = await self._visible("prompt", self._registry.prompts, principal)
        return [shared(ListedPrompt.model_validate(prompt.listed())) for prompt in prompts]

    async def call_trusted(
        self, name: str, arguments: Mapping[str, Any] | None, context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool as the server itself, without guards. Raises ``ToolError`` where the call fails."""
        tool = self._registry.tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        value = await tool.run(arguments or {}, context or self._no_request(), convert_result=True)
        return shared(cast("CallToolResult | InputRequiredResult", value))

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None, principal: Any
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool on behalf of ``principal``. The result has a tool's failure."""
        return _tool_result(await ToolCall(self._binding, name, arguments, principal).run())

    def call_tool_sync(
        self, name: str, arguments: Mapping[str, Any] | None, principal: Any
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool on behalf of ``principal``, without an event loop."""
        return _tool_result(ToolCall(self._binding, name, arguments, principal).run_sync())

    async def read_resource(
        self, uri: str, context: Context[Any, Any] | None, principal: Any
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Reads a resource."""
        from mcpace.server.core.requests import contents_length, read_contents

        work = read_contents(self._registry, uri, context or self._no_request())
        if principal is TRUSTED:
            return cast("Iterable[ReadResourceContents] | InputRequiredResult", await work)
        with closing(work):
            found = self._registry.readable(uri)
            if found is None:
                return cast("Iterable[ReadResourceContents]", await work)  # raises ResourceNotFoundError
            kind, name, entry = found
            guards = self._binding.guards_of(entry)
            await admit(self._binding, kind, name, principal, guards, uri if kind == "template" else None)
            return await bounded(guards, work, lambda read: contents_length(uri, read))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None, context: Context[Any, Any] | None, principal: Any
    ) -> GetPromptResult | InputRequiredResult:
        """Renders a prompt. Raises ``ValueError`` where that fails."""
        prompt = self._registry.prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        work = prompt.render(arguments, context or self._no_request())
        try:
            rendered = await (work if principal is TRUSTED else self._render_for(principal, prompt, work))
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ValueError(str(error)) from error
        if isinstance(rendered, InputRequiredResult):
            return rendered
        messages = [PromptMessage(role=one.role, content=one.content) for one in rendered]
        return shared(GetPromptResult(description=prompt.description, messages=messages))

    async def _render_for(self, principal: Any, prompt: Prompt, work: Coroutine[Any, Any, Any]) -> Any:
        from mcpace.server.registration.prompts import messages_length

        guards = self._binding.guards_of(prompt)
        with closing(work):
            await admit(self._binding, "prompt", prompt.name, principal, guards)
            return await bounded(guards, work, lambda rendered: messages_length(prompt.description, rendered))

    async def _visible(self, kind: Kind, entries: Mapping[str, ValueT], principal: Any) -> list[ValueT]:
        if principal is TRUSTED:
            return list(entries.values())
        return await visible_entries(self._binding, kind, dict(entries), principal)

    def _no_request(self) -> Context[Any, Any]:
        return Context(server=self._binding.server)


def _tool_result(raw: bytes) -> CallToolResult | InputRequiredResult:
    if b'"input_required"' in raw and from_json(raw).get("resultType") == "input_required":
        return shared(InputRequiredResult.model_validate_json(raw))
    return shared(CallToolResult.model_validate_json(raw))


class ToolCall:
    """One call of a tool on behalf of a principal, awaited or run on the calling thread."""

    def __init__(self, binding: CoreBinding, name: str, arguments: Mapping[str, Any] | None, principal: Any) -> None:
        tool: Tool | None = binding.registry.tools.get(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")
        self._binding = binding
        self._name = name
        self._arguments = _arguments_json(arguments)
        self._principal = checked_principal(principal)
        self._guards = binding.guards_of(tool)
        self._limit = self._guards.timeout or binding.server.tool_timeout
        self._plan = binding.registry.plan_of(tool)

    async def run(self) -> bytes:
        """The result as JSON. Raises ``MCPError`` where a client would get a protocol error."""
        await admit(self._binding, "tool", self._name, self._principal, self._guards)
        # The call has a task and context variables of its own.
        try:
            async with asyncio.timeout(self._limit) as limit:
                value = await asyncio.create_task(self._invoke(), context=contextvars.copy_context())
        except TimeoutError:
            if not limit.expired():
                raise
            return failure_json(overdue(self._limit))
        return value

    def run_sync(self) -> bytes:
        """The result as JSON, without an event loop. A plain function runs on this thread; no time limit can end it."""
        if self._plan.kind == "async":
            return _run_on_new_loop(self.run(), self._name)
        admit_sync(self._binding, "tool", self._name, self._principal, self._guards)
        return contextvars.copy_context().run(self._invoke_sync)

    async def _invoke(self) -> bytes:
        try:
            value = await call_function(self._plan.function, self._plan.kind == "async", self._keywords())
            return self._within_bounds(_result_json(self._plan, value))
        except Exception as error:
            return self._failure(error)

    def _invoke_sync(self) -> bytes:
        try:
            return self._within_bounds(_result_json(self._plan, self._plan.function(**self._keywords())))
        except Exception as error:
            return self._failure(error)

    def _keywords(self) -> dict[str, Any]:
        plan = self._plan
        keywords = {} if plan.validate is None else plan.validate(self._arguments)
        if plan.wrap_context is not None:
            context = plan.wrap_context(_Call(self._name, self._arguments, self._principal))
            if plan.context is not None:
                keywords[plan.context] = context
        remember(self._principal)
        return keywords

    def _failure(self, error: Exception) -> bytes:
        answer: Answer = self._plan.fail(error)
        if isinstance(answer, tuple):
            code, message, data = answer
            raise MCPError(code, message, None if data is None else json.loads(data)) from error
        return answer

    def _within_bounds(self, result: bytes) -> bytes:
        words = too_long(len(result) - _ENVELOPE, self._guards)
        return result if words is None else failure_json(words)


_ENVELOPE = len(b'{,"isError":false}')
"""Bytes of a result that do not count towards its bound: the compiled part appends them to the rest."""


def too_long(length: int, guards: Guards) -> str | None:
    """The message about a result that is longer than its bound; ``None`` for one within it."""
    most = guards.max_result_bytes
    if most is None or length <= most:
        return None
    return f"the result is too long: {length} bytes of JSON, and no more than {most} are sent; ask for less"


def overdue(limit: float | None) -> str:
    """The message about a function that exceeded its time limit."""
    return f"timed out after {limit or 0:g} seconds"


def needs_admission(guards: Guards) -> bool:
    """Whether a permission or a rate limit must be checked before a use."""
    return bool(guards.permissions or guards.rate_limits)


async def admit(
    binding: CoreBinding, kind: Kind, name: str, principal: Any, guards: Guards, uri: str | None = None
) -> None:
    """Checks permissions and counts a use, as for a client's request. Raises ``MCPError`` where that is refused."""
    if needs_admission(guards):
        from mcpace import _core

        _raise_refusal(await _core.admit(binding.trusted_core, kind, name, checked_principal(principal), uri=uri))


def admit_sync(binding: CoreBinding, kind: Kind, name: str, principal: Any, guards: Guards) -> None:
    """Checks permissions and counts a use, blocking this thread. Raises ``MCPError`` where that is refused."""
    if needs_admission(guards):
        from mcpace import _core

        _raise_refusal(_core.admit(binding.trusted_core, kind, name, checked_principal(principal)).wait())


async def visible_entries(
    binding: CoreBinding, kind: Kind, entries: Mapping[str, ValueT], principal: Any, exchange: Any = None
) -> list[ValueT]:
    """The entries that a caller may see, in their order. The caller is ``principal``, or the sender of ``exchange`` if
    one is given. Looking counts as no use."""
    guarded = [name for name, entry in entries.items() if binding.guards_of(entry).permissions]
    if not guarded:
        return list(entries.values())
    from mcpace import _core

    core = binding.trusted_core
    if exchange is not None:
        answers = _core.may_see(core, kind, guarded, exchange=exchange)
    else:
        answers = _core.may_see(core, kind, guarded, checked_principal(principal))
    hidden = {name for name, seen in zip(guarded, await answers, strict=True) if not seen}
    return [entry for name, entry in entries.items() if name not in hidden]


async def bounded(guards: Guards, work: Awaitable[ValueT], length: Callable[[ValueT], int]) -> ValueT:
    """The value of a resource or prompt, within the limits of time and length. Raises ``MCPError`` where it exceeds
    one."""
    try:
        async with asyncio.timeout(guards.timeout) as limit:
            value = await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise MCPError(INTERNAL_ERROR, overdue(guards.timeout)) from None
    words = None if guards.max_result_bytes is None else too_long(length(value), guards)
    if words is not None:
        raise MCPError(INTERNAL_ERROR, words)
    return value


def _raise_refusal(refusal: str | None) -> None:
    """Raises the error of a refusing reply."""
    if refusal is not None:
        error = json.loads(refusal)["error"]
        raise MCPError(error["code"], error["message"], error.get("data"))


def _arguments_json(arguments: Any) -> bytes:
    """The arguments as JSON, as a client would send them."""
    if arguments is not None and not isinstance(arguments, Mapping):
        raise TypeError(f"arguments are an object, by names, not {type(arguments).__name__}")
    try:
        return to_json(arguments or {}, fallback=_plain_model)
    except PydanticSerializationError as error:
        raise TypeError(f"arguments have to be what JSON can carry: {error}") from None


def _plain_model(value: Any) -> Any:
    plain = wire(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} is not")
    return plain


def _result_json(plan: HandlerPlan, value: Any) -> bytes:
    """A returned value as a whole result, written as the compiled part writes it."""
    if plan.output == "finished":
        finished: bytes = value
        return finished
    if plan.output in ("text", "wrapped-text") and isinstance(value, str):
        if plan.output == "text":
            return b'{"content":' + text_json(value) + b',"isError":false}'
        text = to_json(value)
        head = b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":{"result":'
        return head + text + b'},"isError":false}'
    written: Any = value if plan.finish is None else plan.finish(value)
    if isinstance(written, tuple):
        data: bytes = written[0]
        text = to_json(json.loads(data), indent=2) if written[1] is True else written[1]
        return b'{"content":' + text_json(text.decode()) + b',"structuredContent":' + data + b',"isError":false}'
    if plan.finish is None:
        raise TypeError(f"returned {type(value).__name__}, not str")
    whole: bytes = written
    return whole


def _run_on_new_loop(work: Coroutine[Any, Any, bytes], name: str) -> bytes:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError(f"tool {name!r} needs an event loop, and this thread runs one: await acall_tool(…) instead")


class _Call:
    """The :class:`mcpace.server.calls.context.Call` of a call that no client sent."""

    request_id = "in-process"
    revision = MODERN
    session_id: str | None = None
    client_info: bytes | None = None
    client_capabilities: bytes | None = None
    meta: bytes | None = None
    input_responses: bytes | None = None
    request_state: str | None = None
    task_id: str | None = None

    def __init__(self, name: str, arguments: bytes, principal: Any) -> None:
        self._name = name
        self._arguments = arguments
        self.principal = principal
        self.headers: dict[str, str] = {}

    @property
    def params(self) -> bytes:
        return b'{"name":' + to_json(self._name) + b',"arguments":' + self._arguments + b"}"

    def is_cancelled(self) -> bool:
        return False

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """There is no client that could receive it."""

    def log(self, level: str, logger: str | None, data: bytes) -> None:
        """There is no client that could receive it."""

    def release(self) -> None:
        """There is no connection to release."""

    def elicitation_complete(self, elicitation_id: str) -> None:
        """No user was asked."""

    def elicit(self, params: bytes) -> NoReturn:
        raise MCPError(INVALID_REQUEST, "a call within the process has no client that could be asked")

    sample = elicit

    def list_roots(self) -> NoReturn:
        self.elicit(b"")

    def begin_task(self) -> NoReturn:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY, "a call within the process is answered with its result, not with a task"
        )
