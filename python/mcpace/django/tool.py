"""A spec as a tool: its entry in lists, and the function that the runtime calls.

Design constraint: one function from argument bytes to result bytes, in one thread, within Django's request cycle. The
compiled part treats it like the function of any other tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import from_json

from mcpace.django import request_cycle
from mcpace.django.choices import UnknownArguments
from mcpace.django.failures import as_tool_error, failure, invalid_arguments, protocol_error
from mcpace.django.limits import CacheRateLimit
from mcpace.django.outputs import Write, Writer, Written
from mcpace.django.request import NOWHERE, Call, Site
from mcpace.server.auth.guards import UNGUARDED, Guards
from mcpace.server.auth.principal import remember
from mcpace.server.core.handlers import HandlerPlan
from mcpace.server.core.local_calls import too_long
from mcpace.server.errors import ToolError
from mcpace.server.registration.tools import entry_of
from mcpace.types import CallToolResult

_RAW, _CALL = "_raw", "_call"


class RunnableSpec(Protocol):
    """A spec that can be run: compiled, or by the dispatcher of djangorestframework-services."""

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    names: Any
    is_async: bool
    """Whether the author's function is a coroutine function."""

    @property
    def is_threaded(self) -> bool:
        """Whether it must run in a thread even if it is asynchronous."""
        ...

    def run(self, call: Call, write: Write) -> Written:
        """Runs the spec in this thread and passes the result to ``write``. Raises the exceptions of :mod:`.failures`,
        and any exception of the author's code."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SpecTool:
    """A tool whose calls run a spec."""

    name: str
    title: str | None
    description: str
    runs: RunnableSpec
    writer: Writer
    unknown: UnknownArguments
    limits: Sequence[CacheRateLimit] = ()
    annotations: Any = None
    icons: Sequence[Any] | None = None
    meta: dict[str, Any] | None = None
    guards: Guards = UNGUARDED
    """Conditions that the runtime checks before a call begins."""
    site: Site = NOWHERE

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments' JSON Schema."""
        schema: dict[str, Any] = self.runs.input_schema
        return schema if self.unknown is not UnknownArguments.REJECT else {**schema, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The structured content's JSON Schema."""
        schema: dict[str, Any] | None = self.runs.output_schema
        return schema

    def listed(self) -> dict[str, Any]:
        """The tool's entry in lists, with the names of the wire format."""
        return entry_of(self)

    def plan(self, server: Any) -> HandlerPlan:
        """The instructions by which the compiled part calls the tool."""
        is_async = self.runs.is_async and not self.runs.is_threaded
        return HandlerPlan(
            function=self._on_the_loop() if is_async else self._in_a_thread(),
            kind="async" if is_async else "sync",
            validate=_raw_arguments,
            context=_CALL,
            wrap_context=_itself,
            output="structured",
            finish=None,
            fail=failure(self.name),
        )

    def execute(self, call: Call) -> Written:
        """Runs a call in this thread. An exception is raised unchanged, for :mod:`.failures` to translate."""
        self._check_names(call)
        return self.runs.run(call, self.writer.write)

    def result(self, call: Call, bounds: Guards = UNGUARDED) -> CallToolResult:
        """Runs a call for a caller within the process. Raises ``ToolError`` where it fails or exceeds a bound."""
        try:
            content, text = self.execute(call)
        except Exception as error:
            raise as_tool_error(self.name, error) from error
        words = too_long(len(content) * 2 if text is True else len(content) + len(text), bounds)
        if words is not None:
            raise ToolError(words)
        return _tool_result(content, text)

    async def run(self, arguments: Mapping[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Runs a call for a caller within the process, off the event loop."""
        from asgiref.sync import sync_to_async

        call = Call(self.name, dict(arguments), context.call, site=self.site, limits=self.limits)
        try:
            result = await sync_to_async(self._run_in_cycle, thread_sensitive=False)(call)
        except Exception as error:
            denied = protocol_error(error)
            if denied is None:
                raise
            raise denied from error
        return result if convert_result else result.structured_content

    def _run_in_cycle(self, call: Call) -> CallToolResult:
        if call.principal is not None:
            remember(call.principal)
        request_cycle.begin()
        try:
            return self.result(call)
        finally:
            request_cycle.end()

    def _in_a_thread(self) -> Callable[..., Written]:
        name, execute, site, limits = self.name, self.execute, self.site, self.limits

        def run(*, _raw: bytes, _call: Any) -> Written:
            call = Call(name, _parse_arguments(_raw), _call, site=site, limits=limits)
            if call.principal is not None:
                remember(call.principal)
            request_cycle.begin()
            try:
                return execute(call)
            finally:
                request_cycle.end()

        return run

    def _on_the_loop(self) -> Callable[..., Any]:
        from asgiref.sync import ThreadSensitiveContext, sync_to_async

        runs: Any = self.runs

        async def run(*, _raw: bytes, _call: Any) -> Written:
            call = Call(self.name, _parse_arguments(_raw), _call, site=self.site, limits=self.limits)
            if call.principal is not None:
                remember(call.principal)
            # One thread for all synchronous steps of this call, because database connections belong to a thread.
            async with ThreadSensitiveContext():
                try:
                    await sync_to_async(self._begin_call)(call)
                    written: Written = await runs.run_async(call, self.writer.write)
                    return written
                finally:
                    await sync_to_async(request_cycle.end_with_thread)()

        return run

    def _begin_call(self, call: Call) -> None:
        request_cycle.begin()
        if self.site.acting is not None:
            # The user is loaded now, because a query is not possible later on the event loop.
            _ = call.user
        self._check_names(call)

    def _check_names(self, call: Call) -> None:
        """Checks the arguments' names. Unknown names are refused, dropped or kept, as ``unknown`` says."""
        names = self.runs.names
        if names is not None and self.unknown is not UnknownArguments.PASSTHROUGH:
            arguments = call.arguments
            if not arguments.keys() <= names:
                if self.unknown is UnknownArguments.REJECT:
                    there = f"; there are {', '.join(sorted(names))}" if names else "; it takes none"
                    raise invalid_arguments(
                        {key: [f"no such argument{there}"] for key in sorted(arguments.keys() - names)}
                    )
                call.arguments = {key: value for key, value in arguments.items() if key in names}


def _raw_arguments(raw: bytes) -> dict[str, Any]:
    return {_RAW: raw}


def _parse_arguments(raw: bytes) -> dict[str, Any]:
    try:
        arguments = from_json(raw) if raw else {}
    except ValueError as error:
        # The runtime has validated the JSON, so the only possible error are lone surrogates, which are not text.
        raise invalid_arguments(None, f"the arguments are no text: {error}") from error
    return arguments if isinstance(arguments, dict) else {}


def _itself(call: Any) -> Any:
    return call


def _tool_result(content: bytes, text: Any) -> CallToolResult:
    from pydantic_core import to_json

    value = from_json(content)
    shown = to_json(value, indent=2).decode() if text is True else text.decode()
    return CallToolResult.model_validate(
        {"content": [{"type": "text", "text": shown}], "structuredContent": value, "isError": False}
    )
