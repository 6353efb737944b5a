"""FastMCP's tools: its schemas, its results and its words for failures, over the machinery of :mod:`mcpace.server`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from mcpace.fastmcp.authorization import guarded
from mcpace.fastmcp.context import Context, current
from mcpace.fastmcp.dependencies import injected
from mcpace.server.content import content_of, failure_json, media_block
from mcpace.server.errors import (
    InputRequired,
    InvalidArguments,
    InvalidSignature,
    ToolError,
    UnsupportedOption,
    is_protocol_error,
    is_tool_error,
    logger,
)
from mcpace.server.handlers import Answer, Plan, protocol_answer
from mcpace.server.lookout import looks_around
from mcpace.server.output import output_of, result_json
from mcpace.server.tools import Tool
from mcpace.types import CallToolResult, InputRequiredResult, is_content_type, is_kind, wire

if TYPE_CHECKING:
    from mcpace.fastmcp.app import FastMCP

WRAPPED = {"fastmcp": {"wrap_result": True}}
_CONTEXT = "_context"


class Unset:
    """What stands where nothing was given and ``None`` says something."""


UNSET = Unset()


class ToolResult(CallToolResult):
    """A tool's whole result: content for the model, structured content for programs."""

    def __init__(
        self,
        content: Any = None,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
        is_error: bool = False,
        **members: Any,
    ) -> None:
        if content is None and structured_content is None and not members:
            raise ValueError("Either content or structured_content must be provided")
        shown = structured_content if content is None else content
        blocks = shown if _is_wire(shown) else _blocks(shown)
        given = {"structured_content": structured_content, "meta": meta, "is_error": is_error}
        super().__init__(content=blocks, **{key: value for key, value in given.items() if value is not None}, **members)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool(Tool):
    """A function as a tool of FastMCP's kind."""

    tags: frozenset[str] = frozenset()
    timeout: float | None = None
    run_in_thread: bool = True
    schema: dict[str, Any] | None = None
    """Of the structured content."""
    bare: Callable[..., Any] = field(default=lambda: None)
    """The author's function."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        tags: set[str] | None = None,
        output_schema: dict[str, Any] | Unset | None = UNSET,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        timeout: float | None = None,
        auth: Any = None,
        run_in_thread: bool = True,
    ) -> FunctionTool:
        """A tool of a function. Raises ``InvalidSignature`` or ``RegistrationError`` where it can't be one."""
        if timeout is not None and not run_in_thread and not inspect.iscoroutinefunction(function):
            raise UnsupportedOption(
                "timeout with run_in_thread=False: a function on the loop's thread can't be stopped"
            )
        plain = Tool.from_function(injected(function), name, title, description or _description(function))
        if plain.resolved:
            raise InvalidSignature(
                f"Parameter {next(iter(plain.resolved))!r} of tool {plain.name!r}: Resolve(...) belongs to MCPServer; "
                "write the parameter's default as Depends(find)"
            )
        output = output_of(function)
        schema = output_schema
        if isinstance(schema, Unset):
            schema = _schema(output.schema, plain.fn)
        elif schema is not None and schema.get("type") != "object" and "properties" not in schema:
            raise UnsupportedOption(f"output_schema of tool {plain.name!r}: it must be an object's")
        tool = cls(
            fn=plain.fn,
            name=plain.name,
            title=title,
            description=plain.description,
            arguments=plain.arguments,
            output=output,
            is_async=plain.is_async,
            context_kwarg=None,
            resolved={},
            plans={},
            annotations=annotations,
            icons=icons,
            meta=meta,
            tags=frozenset(tags or ()),
            timeout=timeout,
            run_in_thread=run_in_thread,
            schema=schema,
            bare=function,
        )
        return tool if auth is None and timeout is None else replace(tool, guards=guarded(auth, tool, timeout))

    @property
    def is_wrapped(self) -> bool:
        """Whether structured content is ``{"result": …}`` around the value."""
        return bool(self.schema and self.schema.get("x-fastmcp-wrap-result"))

    def listed(self) -> dict[str, Any]:
        """What lists show, in wire names."""
        own = self.meta or {}
        entry = {
            "name": self.name,
            "title": self.title or self.name.replace("_", " ").replace("-", " ").title(),
            "description": self.description or None,
            "inputSchema": _untitled(self.arguments.schema),
            "outputSchema": self.schema,
            "icons": wire(self.icons),
            "annotations": wire(self.annotations),
            "_meta": {**own, "fastmcp": {**own.get("fastmcp", {}), "tags": sorted(self.tags)}},
        }
        return {key: value for key, value in entry.items() if value is not None}

    def plan(self, server: FastMCP) -> Plan:
        """How the compiled part calls it."""
        needs_context = self.fn is not self.bare or looks_around(self.bare, server) is not None
        function, kind = self.fn, "async" if self.is_async else "sync"
        if not self.is_async and not self.run_in_thread:
            function, kind = _on_the_loop(self.fn), "async"
        takes_text: Literal["text", "custom"] = "text" if self.schema is None else "custom"
        return Plan(
            function=function,
            kind="async" if kind == "async" else "sync",
            validate=self.arguments.validate_json,
            context=None,
            wrap_context=server._inside.contexts("tools/call")
            if needs_context or server._inside.remembers_principals
            else None,
            output=takes_text,
            finish=self.finish,
            fail=self.failure(server),
        )

    def finish(self, value: Any) -> bytes:
        """A returned value as a whole result's JSON."""
        if self.is_wrapped and type(value) is str:
            text = to_json(value)
            head = b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":{"result":'
            return head + text + b'},"_meta":{"fastmcp":{"wrap_result":true}},"isError":false}'
        if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
            raise InputRequired(InputRequiredResult.model_validate(value))
        if is_kind(type(value), (CallToolResult, ToolResult), "CallToolResult", "ToolResult"):
            return result_json(value)
        result: dict[str, Any] = {"content": [wire(block) for block in _blocks(value)]}
        if self.schema is not None or not _has_blocks(value):
            structured = self._structured(value)
            if structured is not None:
                result["structuredContent"] = structured
        if self.is_wrapped:
            result["_meta"] = WRAPPED
        return to_json({**result, "isError": False})

    def failure(self, server: FastMCP) -> Callable[[BaseException], Answer]:
        """What an exception is answered with: FastMCP tells what it was, unless its details are masked."""

        def fail(error: BaseException) -> Answer:
            known = protocol_answer(error)
            if known is not None:
                return known
            return failure_json(self.words(error, server))

        return fail

    def words(self, error: BaseException, server: FastMCP) -> str:
        """What a failure is told as. A crash is logged."""
        if isinstance(error, InvalidArguments):
            return str(error.__cause__ or error)
        if is_tool_error(error):
            return str(error)
        logger.error("Error calling tool %r", self.name, exc_info=error)
        if server.masks_errors:
            return f"Error calling tool {self.name!r}"
        return f"Error calling tool {self.name!r}: {error}"

    async def run(self, arguments: Mapping[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Runs the tool in this process. Raises ``ToolError`` where it fails; a protocol error passes."""
        server = context.mcp_server
        token = current.set(context if isinstance(context, Context) else Context(call=context.call, server=server))
        try:
            value = await self.call(self.arguments.validate(arguments), context)
            return ToolResult.model_validate_json(self.finish(value)) if convert_result else value
        except InputRequired as questions:
            return questions.result
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ToolError(self.words(error, server)) from error
        finally:
            current.reset(token)

    def _structured(self, value: Any) -> Any:
        try:
            jsonable = to_jsonable_python(value, by_alias=True)
        except PydanticSerializationError as error:
            if self.schema is None:
                return None
            raise ToolError(
                f"Could not serialize the return value of tool {self.name!r} for its output schema: {error}"
            ) from error
        if self.is_wrapped:
            return {"result": jsonable}
        return jsonable if self.schema is not None or isinstance(jsonable, dict) else None


def _on_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(**keywords: Any) -> Any:
        return function(**keywords)

    return call


def _schema(official: dict[str, Any] | None, function: Callable[..., Any]) -> dict[str, Any] | None:
    """FastMCP's output schema, from the official SDK's: no titles, and a mark where the value is wrapped."""
    if official is None:
        return None
    schema: dict[str, Any] = _untitled(official)
    is_wrapper = official.get("title") == f"{function.__name__}Output" and list(official["properties"]) == ["result"]
    if not is_wrapper:
        return schema
    if schema["properties"]["result"] == {"type": "null"}:
        return None
    return {**schema, "x-fastmcp-wrap-result": True}


def _untitled(schema: Any, within_properties: bool = False) -> Any:
    """A schema without the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _untitled(value, key in ("properties", "$defs") and not within_properties)
        for key, value in schema.items()
        if within_properties or key != "title" or not isinstance(value, str)
    }


def _description(function: Callable[..., Any]) -> str:
    return inspect.getdoc(function) or ""


def _is_wire(value: Any) -> bool:
    """Whether content is blocks already, of ours or as JSON."""
    return isinstance(value, list) and all(_is_block(one) or (isinstance(one, dict) and "type" in one) for one in value)


def _is_block(value: Any) -> bool:
    return is_content_type(type(value)) or media_block(value) is not None


def _has_blocks(value: Any) -> bool:
    return _is_block(value) or (isinstance(value, list | tuple) and any(_is_block(one) for one in value))


def _blocks(value: Any) -> list[Any]:
    """A value as content: blocks as they are, text as text, anything else as one text of JSON."""
    if value is None:
        return []
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str) or _is_block(value):
        return list(content_of(value))
    if isinstance(value, list | tuple) and _has_blocks(value):
        return [block for one in value for block in _blocks(one)]
    return list(content_of(to_json(value, by_alias=True, fallback=str).decode()))
