"""FastMCP's tools: its schemas, results and error messages, on the machinery of :mod:`mcpace.server`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from mcpace.fastmcp.authorization import component_guards
from mcpace.fastmcp.content import ANYTHING, adapter_of, blocks_of, has_blocks, jsonable
from mcpace.fastmcp.context import current
from mcpace.fastmcp.dependencies import inject_dependencies
from mcpace.fastmcp.errors import has_public_message
from mcpace.fastmcp.schemas import (
    CallArguments,
    arguments_of,
    inline_references,
    is_object,
    output_schema_of,
    parse_docstring,
)
from mcpace.server.calls.content import failure_json, text_json
from mcpace.server.core.failures import Answer, protocol_answer
from mcpace.server.core.handlers import HandlerPlan
from mcpace.server.errors import (
    InputRequired,
    InvalidArguments,
    InvalidSignature,
    RegistrationError,
    ToolError,
    UnsupportedOption,
    is_protocol_error,
    is_tool_error,
    logger,
)
from mcpace.server.registration.context_use_scan import find_context_use
from mcpace.server.registration.injection import find_resolved
from mcpace.server.registration.output import result_json, unstructured
from mcpace.server.registration.signature import is_async, name_of, signature_of
from mcpace.server.registration.tasks import task_config
from mcpace.server.registration.tools import Tool, check_name
from mcpace.types import CallToolResult, InputRequiredResult, ToolAnnotations, is_content_type, is_kind, wire

if TYPE_CHECKING:
    from mcpace.fastmcp.app import FastMCP
    from mcpace.server.registration.tasks import TaskConfig


class Unset:
    """Type of the default of options for which ``None`` has a meaning."""


UNSET = Unset()


class ToolResult(CallToolResult):
    """The complete result of a tool: content for the model, structured content for programs."""

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
        if structured_content is not None:
            structured_content = jsonable(structured_content)
            if not isinstance(structured_content, dict):
                raise ValueError(f"structured_content must be a dict or None, not {type(structured_content).__name__}")
        shown = structured_content if content is None else content
        blocks = shown if _is_wire(shown) else blocks_of(shown)
        given = {"structured_content": structured_content, "meta": meta, "is_error": is_error}
        super().__init__(content=blocks, **{key: value for key, value in given.items() if value is not None}, **members)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool(Tool):
    """A tool that calls a function."""

    tags: frozenset[str] = frozenset()
    timeout: float | None = None
    run_in_thread: bool = True
    schema: dict[str, Any] | None = None
    """JSON Schema of the structured content."""
    writer: TypeAdapter[Any] = ANYTHING
    """Serializer of the function's return value."""
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
        task: bool | TaskConfig | None = None,
    ) -> FunctionTool:
        """A tool of a function. Raises ``InvalidSignature`` or ``RegistrationError`` where it can't be one."""
        if not callable(function):
            raise RegistrationError(f"A tool is a function, not {type(function).__name__} {function!r}")
        called = name or name_of(function)
        if called == "<lambda>":
            raise RegistrationError("You must provide a name for lambda functions")
        check_name(called)
        _check_resolvers(function, called)
        fn = inject_dependencies(function)
        if timeout is not None and not run_in_thread and not is_async(function):
            raise UnsupportedOption(
                "timeout with run_in_thread=False: a function on the loop's thread can't be stopped"
            )
        returned = signature_of(fn).return_annotation
        schema = output_schema_of(returned) if isinstance(output_schema, Unset) else output_schema
        if schema is not None and not is_object(schema):
            raise RegistrationError(f"output_schema of tool {called!r}: it must be an object's, not {schema!r}")
        about, described = parse_docstring(function)
        tool = cls(
            fn=fn,
            name=called,
            title=title,
            description=description if description is not None else about or "",
            arguments=arguments_of(fn, described),
            output=_NO_OUTPUT,
            is_async=is_async(fn),
            context_kwarg=None,
            resolved={},
            plans={},
            annotations=ToolAnnotations.model_validate(annotations) if isinstance(annotations, dict) else annotations,
            icons=icons,
            meta=meta,
            tags=frozenset(tags or ()),
            timeout=timeout,
            run_in_thread=run_in_thread,
            schema=schema,
            writer=adapter_of(returned),
            task=task_config(task or None, called, is_async=is_async(fn)),
            bare=function,
        )
        return tool if auth is None and timeout is None else replace(tool, guards=component_guards(auth, tool, timeout))

    @classmethod
    def from_tool(cls, tool: Any, **_: Any) -> FunctionTool:
        """Raises ``UnsupportedOption``, because tools can't be transformed."""
        raise UnsupportedOption(
            f"Tool.from_tool({getattr(tool, 'name', tool)!r}): register a function with the name, description and "
            "parameters that you want, which calls the other"
        )

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> FunctionTool:  # type: ignore[override]
        """A tool of a function, with the options of ``FastMCP.tool``."""
        return cls.of(fn, **options)

    @property
    def is_wrapped(self) -> bool:
        """Whether structured content is ``{"result": …}`` around the value."""
        return bool(self.schema and self.schema.get("x-fastmcp-wrap-result"))

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the structured content."""
        return self.schema

    def listed(self) -> dict[str, Any]:
        """The tool's entry in lists, with the names of the wire format."""
        entry = {
            "name": self.name,
            "title": self.title or getattr(self.annotations, "title", None) or _title(self.name),
            "description": self.description or None,
            "inputSchema": inline_references(self.arguments.schema),
            "outputSchema": inline_references(self.schema),
            "icons": wire(self.icons),
            "annotations": wire(self.annotations),
            "_meta": meta_with_tags(self.meta, self.tags),
        }
        return {key: value for key, value in entry.items() if value is not None}

    def plan(self, server: FastMCP) -> HandlerPlan:
        """The instructions by which the compiled part calls the tool."""
        needs_context = self.fn is not self.bare or find_context_use(self.bare, server) is not None
        function, kind = self.fn, "async" if self.is_async else "sync"
        if not self.is_async and not self.run_in_thread:
            function, kind = _on_the_loop(self.fn), "async"
        takes_text: Literal["text", "custom"] = "text" if self.schema is None else "custom"
        arguments = cast("CallArguments", self.arguments)
        return HandlerPlan(
            function=function,
            kind="async" if kind == "async" else "sync",
            validate=arguments.strictly() if server.strict_input_validation else arguments.validate_json,
            context=None,
            wrap_context=server.__mcpace_core__.context_factory("tools/call")
            if needs_context or server.__mcpace_core__.has_principals
            else None,
            output=takes_text,
            finish=self.finish,
            fail=self.failure(server),
        )

    def finish(self, value: Any) -> bytes:
        """The JSON of the complete result for a return value."""
        if self.is_wrapped and type(value) is str:
            text = to_json(value)
            head = b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":{"result":'
            return head + text + b'},"_meta":{"fastmcp":{"wrap_result":true}},"isError":false}'
        kind = type(value)
        if is_kind(kind, InputRequiredResult, "InputRequiredResult"):
            raise InputRequired(InputRequiredResult.model_validate(value))
        if is_kind(kind, CallToolResult, "CallToolResult"):
            return result_json(value)
        if is_kind(kind, ToolResult, "ToolResult"):
            return result_json(own_result(value))
        is_content = has_blocks(value)
        data = None
        if not isinstance(value, bytes) and (self.schema is not None or not is_content):
            data = self._data(value)
        parts = [b'{"content":', _blocks_json(value) if is_content or data is None else _data_json(data)]
        if data is not None and self.is_wrapped:
            parts += [b',"structuredContent":{"result":', data, b'},"_meta":{"fastmcp":{"wrap_result":true}}']
        elif data is not None and data.startswith(b"{"):
            parts += [b',"structuredContent":', data]
        return b"".join([*parts, b',"isError":false}'])

    def failure(self, server: FastMCP) -> Callable[[BaseException], Answer]:
        """The function that turns an exception into an answer. As in FastMCP, the answer includes the exception's
        message unless details are masked."""

        def fail(error: BaseException) -> Answer:
            known = protocol_answer(error)
            if known is not None:
                return known
            return failure_json(self.words(error, server))

        return fail

    def words(self, error: BaseException, server: FastMCP) -> str:
        """The message for a failure. A crash is also logged."""
        if isinstance(error, InvalidArguments):
            return str(error.__cause__ or error)
        if is_tool_error(error) or has_public_message(error):
            return str(error)
        logger.error("Error calling tool %r", self.name, exc_info=error)
        if server.masks_errors:
            return f"Error calling tool {self.name!r}"
        return f"Error calling tool {self.name!r}: {error}"

    async def run(self, arguments: Mapping[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Runs the tool in this process. Raises ``ToolError`` where it fails; a protocol error passes."""
        server = context.mcp_server
        token = current.set(context)
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

    def _data(self, value: Any) -> bytes | None:
        """A value as JSON; ``None`` for a value that isn't serializable where no output schema requires it."""
        try:
            return self.writer.serializer.to_json(value, warnings=False)
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            if self.schema is None:
                return None
            raise ToolError(
                f"Could not serialize the return value of tool {self.name!r} for its output schema: {error}. If this "
                "is unexpected, set the tool's output_schema to None to disable automatic serialization."
            ) from error


def _blocks_json(value: Any) -> bytes:
    return to_json([wire(block) for block in blocks_of(value)])


def _data_json(data: bytes) -> bytes:
    """The content for a value, from its JSON: a string becomes its own text, any other value the text of the JSON."""
    if data in (b"null", b"[]"):
        return b"[]"
    if data.startswith(b'"'):
        return b'[{"type":"text","text":' + data + b"}]"
    return text_json(data.decode())


def own_result(value: Any) -> ToolResult:
    """Converts FastMCP's own ``ToolResult``."""
    return ToolResult(
        content=list(value.content),
        structured_content=value.structured_content,
        meta=value.meta,
        is_error=value.is_error,
    )


def meta_with_tags(meta: dict[str, Any] | None, tags: Iterable[str]) -> dict[str, Any]:
    """A component's metadata for lists, including its tags."""
    own = meta or {}
    public = {key: value for key, value in own.get("fastmcp", {}).items() if not key.startswith("_")}
    return {**own, "fastmcp": {**public, "tags": sorted(tags)}}


def _title(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").title()


def _check_resolvers(function: Callable[..., Any], tool: str) -> None:
    resolved = find_resolved(function)
    if resolved:
        raise InvalidSignature(
            f"Parameter {next(iter(resolved))!r} of tool {tool!r}: Resolve(...) belongs to MCPServer; write the "
            "parameter's default as Depends(find)"
        )


def _on_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(**keywords: Any) -> Any:
        return function(**keywords)

    return call


def _is_wire(value: Any) -> bool:
    """Whether content consists of blocks already, as objects or as JSON."""
    if not isinstance(value, list) or not value:
        return False
    return all(is_content_type(type(one)) or (isinstance(one, dict) and _is_block_json(one)) for one in value)


def _is_block_json(value: dict[str, Any]) -> bool:
    return value.get("type") in ("text", "image", "audio", "resource", "resource_link")


_NO_OUTPUT = unstructured()
"""Results are written by this module, not by the official SDK's rules."""
