"""Tools: a function, its entry in lists, and the way it is called.

Design constraint: the compiled part receives a plain tool's function unchanged, with a validator and a writer of its
result, and no other Python code runs in a call. Only tools that need more (injected values, middleware) are wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcpace.server.auth.guards import UNGUARDED, Guards
from mcpace.server.calls.invocation import call_function
from mcpace.server.errors import InputRequired, InvalidSignature, RegistrationError, tool_exception
from mcpace.server.registration.injection import (
    ResolverPlan,
    Source,
    find_context,
    find_resolved,
    plans_of,
    returns_questions,
)
from mcpace.server.registration.output import Notation, Output, output_of
from mcpace.server.registration.signature import Arguments, arguments_of, is_async, name_of
from mcpace.server.registration.tasks import FORBIDDEN, TaskConfig, task_config
from mcpace.types import InputRequiredResult, is_kind, wire

if TYPE_CHECKING:
    from mcpace.server.registration.toon import OutputFormat

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A registered tool. Make one with :meth:`from_function`, or with the decorator ``@server.tool()``."""

    fn: Callable[..., Any]
    name: str
    title: str | None
    description: str
    arguments: Arguments
    output: Output
    is_async: bool
    context_kwarg: str | None
    resolved: Mapping[str, Source]
    plans: Mapping[Hashable, ResolverPlan]
    annotations: Any = None
    icons: Sequence[Any] | None = None
    meta: dict[str, Any] | None = None
    guards: Guards = UNGUARDED
    """The guards of the tool."""
    task: TaskConfig = FORBIDDEN
    """The way it runs as a task."""

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        context_kwarg: str | None = None,
        annotations: Any = None,
        icons: Sequence[Any] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        guards: Guards = UNGUARDED,
        output_format: OutputFormat = "json",
        task: bool | TaskConfig | None = None,
    ) -> Tool:
        """A tool of a function. Name, description and schemas default to the function's. Raises ``InvalidSignature`` or
        ``RegistrationError`` for a function that can't be a tool.
        """
        if not callable(fn):
            raise RegistrationError(f"A tool is a function, not {type(fn).__name__} {fn!r}")
        called = name or name_of(fn)
        if called == "<lambda>":
            raise RegistrationError("You must provide a name for lambda functions")
        check_name(called)
        context = context_kwarg or find_context(fn)
        resolved = find_resolved(fn)
        if resolved and returns_questions(fn):
            raise InvalidSignature(
                f"Tool {called!r} combines Resolve(...) parameters with an InputRequiredResult return: a call has one "
                "channel for questions, so either resolvers ask or the tool's own body does"
            )
        arguments = arguments_of(fn, skip=[*([context] if context else []), *resolved])
        return cls(
            fn=fn,
            name=called,
            title=title,
            description=description or fn.__doc__ or "",
            arguments=arguments,
            output=output_of(fn, structured_output).noted(_notation(output_format, called)),
            is_async=is_async(fn),
            context_kwarg=context,
            resolved=resolved,
            plans=plans_of(resolved, set(arguments.parameters.values())),
            annotations=annotations,
            icons=icons,
            meta=meta,
            guards=guards,
            task=task_config(task, called, is_async=is_async(fn)),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments' JSON Schema."""
        return self.arguments.schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The structured content's JSON Schema."""
        return self.output.schema

    def listed(self) -> dict[str, Any]:
        """The entry of the tool in lists, in wire names."""
        return entry_of(self)

    async def run(self, arguments: Mapping[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Runs the tool in this process. Returns its value, or with ``convert_result`` the result that a client would
        get.

        Raises ``ToolError`` if it fails, ``UnexpectedToolError`` if it crashes; a protocol error passes unchanged.
        """
        try:
            keywords = self.arguments.validate(arguments)
            value = await self.call(keywords, context)
            return self.output.result(value) if convert_result else value
        except InputRequired as questions:
            return questions.result
        except Exception as error:
            told = tool_exception(self.name, error)
            if told is error:
                raise
            raise told from told.__cause__

    async def call(self, keywords: dict[str, Any], context: Any) -> Any:
        """Calls the function with validated arguments, after its resolvers."""
        if self.context_kwarg is not None:
            keywords[self.context_kwarg] = context
        if self.resolved:
            from mcpace.server.registration.resolvers import resolve

            # Resolvers see the same validated arguments as the function.
            injected = await resolve(self.resolved, self.plans, keywords, context)
            if isinstance(injected, InputRequiredResult):
                raise InputRequired(injected)
            keywords |= injected
        value = await call_function(self.fn, self.is_async, keywords)
        if self.resolved and is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
            raise RuntimeError(
                f"tool {self.name!r} returned an InputRequiredResult, but its parameters use Resolve(...): a call has "
                "one channel for questions, so either resolvers ask or the tool's own body does"
            )
        return value


def check_name(name: str) -> None:
    """Raises ``RegistrationError`` for an invalid tool name."""
    if not _NAME.fullmatch(name):
        raise RegistrationError(
            f"Tool name {name!r}: a name has 1 to 128 of the characters A-Z, a-z, 0-9, _, -, . and /; "
            "give another with name=, and the one for people with title="
        )


def entry_of(tool: Any) -> dict[str, Any]:
    """The entry of a tool in lists, in wire names. Tools of mcpace.fastmcp and mcpace.django have the same
    attributes."""
    entry = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "outputSchema": tool.output_schema,
        "icons": wire(tool.icons),
        "annotations": wire(tool.annotations),
        "_meta": tool.meta,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _notation(output_format: OutputFormat, tool: str) -> Notation | None:
    if output_format == "json":
        return None
    if output_format not in ("toon", "auto"):
        raise RegistrationError(f"output_format={output_format!r} of tool {tool!r}: there are json, toon and auto")
    from mcpace.server.registration.toon import notation

    return notation(output_format, tool)
