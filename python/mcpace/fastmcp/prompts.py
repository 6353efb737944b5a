"""FastMCP's prompts: messages with any content, complete results, and arguments of any type, which are sent as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, TypeAdapter
from pydantic import ValidationError as PydanticValidationError

from mcpace.fastmcp.authorization import Component, component_guards
from mcpace.fastmcp.content import is_block, text_of
from mcpace.fastmcp.dependencies import inject_dependencies
from mcpace.fastmcp.errors import PromptError, protocol_error
from mcpace.fastmcp.schemas import arguments_of, parse_docstring
from mcpace.fastmcp.tools import meta_with_tags
from mcpace.server.calls.invocation import call_function
from mcpace.server.errors import InputRequired, MCPError, RegistrationError, is_protocol_error, logger
from mcpace.server.registration import prompts as plain
from mcpace.server.registration.signature import is_async, name_of, signature_of
from mcpace.types import INVALID_PARAMS, InputRequiredResult, PromptArgument, is_kind, wire

if TYPE_CHECKING:
    from mcpace.fastmcp.schemas import CallArguments


class Message(plain.Message):
    """One message of a prompt, by default of the user. Content that is neither text nor a block is written as JSON."""

    def __init__(self, content: Any, role: Literal["user", "assistant"] = "user") -> None:
        shown = content if isinstance(content, str) or is_block(content) else text_of(content)
        super().__init__(shown, role=role)


class PromptResult(BaseModel):
    """The complete result of a prompt: messages, a description, metadata."""

    messages: list[Message]
    description: str | None = None
    meta: dict[str, Any] | None = None

    def __init__(self, messages: Any, description: str | None = None, meta: dict[str, Any] | None = None) -> None:
        super().__init__(messages=_messages(messages), description=description, meta=meta)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPrompt(plain.Prompt):
    """A prompt that calls a function."""

    tags: frozenset[str] = frozenset()
    meta: dict[str, Any] | None = None
    readers: Mapping[str, tuple[Any, TypeAdapter[Any]]] = field(default_factory=dict)
    """Types and readers of the arguments that are not text, by name."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        tags: Iterable[str] | None = None,
        meta: dict[str, Any] | None = None,
        auth: Any = None,
    ) -> FunctionPrompt:
        """A prompt of a function. Raises ``InvalidSignature`` or ``RegistrationError`` where it can't be one."""
        called = name or name_of(function)
        if called == "<lambda>":
            raise RegistrationError("You must provide a name for lambda functions")
        fn = inject_dependencies(function)
        about, described = parse_docstring(function)
        taken = arguments_of(fn, described)
        kinds = {one.name: one.annotation for one in signature_of(fn).parameters.values()}
        readers = {key: (kind, TypeAdapter(kind)) for key, kind in kinds.items() if kind not in (str, _UNTYPED)}
        properties = taken.schema.get("properties", {})
        arguments = [
            PromptArgument(
                name=key,
                description=_argument(properties[key].get("description"), readers.get(key)),
                required=key in taken.schema.get("required", ()),
            )
            for key in properties
        ]
        labels = frozenset(tags or ())
        return cls(
            fn=fn,
            name=called,
            title=title,
            description=description if description is not None else about or "",
            arguments=arguments,
            taken=taken,
            is_async=is_async(fn),
            context_kwarg=None,
            icons=icons,
            guards=component_guards(auth, Component(called, labels, meta)),
            tags=labels,
            meta=meta,
            readers=readers,
        )

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> FunctionPrompt:  # type: ignore[override]
        """A prompt of a function, with the options of ``FastMCP.prompt``."""
        return cls.of(fn, **options)

    def listed(self) -> dict[str, Any]:
        """The prompt's entry in lists, with the names of the wire format."""
        entry = {
            "name": self.name,
            "title": self.title,
            "description": self.description or None,
            "arguments": wire(self.arguments),
            "icons": wire(self.icons),
            "_meta": meta_with_tags(self.meta, self.tags),
        }
        return {key: value for key, value in entry.items() if value is not None}

    async def render(self, arguments: Mapping[str, Any] | None, context: Any) -> Any:
        """The messages. Raises ``MCPError`` where a required argument is missing, or the function fails."""
        given = dict(arguments or {})
        missing = {one.name for one in self.arguments if one.required} - given.keys()
        if missing:
            raise MCPError(INVALID_PARAMS, f"Missing required arguments: {missing}")
        try:
            value = await self.call(given, context)
            if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
                return InputRequiredResult.model_validate(value)
            return self.result(value)
        except InputRequired as questions:
            return questions.result
        except Exception as error:
            if is_protocol_error(error) or hasattr(error, "_asked"):
                raise
            logger.error("Error rendering prompt %r", self.name, exc_info=error)
            words = f"Error rendering prompt {self.name!r}"
            raise protocol_error(error, words, context.mcp_server.masks_errors) from error

    async def call(self, arguments: Mapping[str, Any], context: Any) -> Any:
        """Calls the function with arguments converted to its types. Unknown arguments are ignored."""
        known = {name: self._read(name, value) for name, value in arguments.items() if name in self.taken.names}
        keywords = cast("CallArguments", self.taken).validate(known)
        return await call_function(self.fn, self.is_async, keywords)

    def result(self, value: Any) -> plain.Messages:
        """A function's value as messages with a description and metadata."""
        if is_kind(type(value), PromptResult, "PromptResult"):
            return plain.Messages(_messages(list(value.messages)), value.description, value.meta)
        if not isinstance(value, str | list | tuple):
            raise TypeError(f"Prompt must return str, list[Message], or PromptResult, got {type(value).__name__}")
        return plain.Messages(_messages(value), self.description or None, public_meta(self.meta))

    def _read(self, name: str, value: Any) -> Any:
        """An argument's text, converted to the parameter's type."""
        if name not in self.readers or not isinstance(value, str):
            return value
        kind, adapter = self.readers[name]
        try:
            read = adapter.validate_python(value)
            return read if isinstance(read, str) else _parse_json_or(adapter, value, read)
        except ValueError:
            try:
                return adapter.validate_json(value)
            except PydanticValidationError as error:
                raise PromptError(
                    f"Could not convert argument {name!r} with value {value!r} to expected type {kind}. Error: {error}"
                ) from error


_UNTYPED = signature_of(lambda _value: None).parameters["_value"].annotation


def public_meta(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """A component's metadata for its results, without FastMCP's private members."""
    if not meta:
        return None
    public = {key: value for key, value in meta.items() if key != "fastmcp"}
    own = {key: value for key, value in (meta.get("fastmcp") or {}).items() if not key.startswith("_")}
    return {**public, **({"fastmcp": own} if own else {})} or None


def _parse_json_or(adapter: TypeAdapter[Any], text: str, read: Any) -> Any:
    """The text parsed as JSON, if that is a value of the type; otherwise ``read``."""
    try:
        return adapter.validate_json(text)
    except ValueError:
        return read


def _argument(description: str | None, reader: tuple[Any, TypeAdapter[Any]] | None) -> str | None:
    """The description of an argument, which also explains its encoding as text."""
    if reader is None:
        return description
    try:
        schema = json.dumps(reader[1].json_schema(), separators=(",", ":"))
    except Exception:  # pydantic's exceptions for types without a schema have no common base
        return description
    note = f"Provide a value matching the following JSON schema: {schema}. Encode non-string values as JSON."
    return f"{description}\n\n{note}" if description else note


def _messages(value: Any) -> list[Message]:
    if isinstance(value, str):
        return [Message(value)]
    if not isinstance(value, list | tuple):
        raise TypeError(f"messages must be str or list[Message], got {type(value).__name__}")
    return [_message(one, number) for number, one in enumerate(value)]


def _message(value: Any, number: int) -> Message:
    if isinstance(value, Message):
        return value
    if isinstance(value, str):
        return Message(value)
    if is_kind(type(value), plain.Message, "Message", "UserMessage", "AssistantMessage", "PromptMessage"):
        return Message(value.content, value.role)
    raise TypeError(
        f"messages[{number}] must be Message or str, got {type(value).__name__}. Use Message({value!r}) to wrap the "
        "value."
    )
