"""Conversion of returned values to results, derived from the return annotation by the official SDK's rules.

:mod:`mcpace.server.registration.output_schema` determines the type and the schema of structured content.

Design constraint: registration chooses the fastest path that gives the same bytes. The compiled part writes plain text;
pydantic's serializer writes other values directly to JSON.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from typing_inspection.introspection import (
    UNKNOWN,
    AnnotationSource,
    ForbiddenQualifier,
    inspect_annotation,
    is_union_origin,
)

from mcpace.server.calls.content import content_json, content_of, returns_content, text_json
from mcpace.server.errors import InputRequired, InvalidSignature, logger
from mcpace.server.registration.output_schema import NO_SCHEMA, adapter_of, is_plain, model_of, schema_of
from mcpace.server.registration.signature import name_of, signature_of
from mcpace.types import CallToolResult, InputRequiredResult, is_kind

Notation = Callable[[Any, Any], str | None]
"""Converts data, and the value that it was made of, to text; ``None`` keeps the value's JSON as the text."""
Data = tuple[bytes, bytes | Literal[True]]
"""Structured content as JSON, and the text; ``True`` where that is this JSON, indented by two."""
Kind = Literal["text", "wrapped-text", "structured", "custom"]
"""How the compiled part writes a result: text, text with ``{"result": …}``, structured content and text, or whole."""
PlainValue = Literal["int", "bool", "dict[int]", "dict[bool]", "dict[str]", "dict"]
"""The values that the compiled part writes itself, if they have exactly these types; ``dict`` is of text to any of
them, ``None``, and lists and dictionaries of them."""


@dataclass(frozen=True, slots=True)
class Output:
    """The conversion of a tool's returned values."""

    kind: Kind
    schema: dict[str, Any] | None
    """The JSON schema of the structured content."""
    structure: Callable[[Any], Any] | None
    """Converts a value to structured content. Raises an error if the value does not match the annotation."""
    structure_json: Callable[[Any], bytes] | None
    """Converts a value to structured content as JSON."""
    check: Callable[[Any], Any] | None
    """Validates the structured content of a result that the tool made itself."""
    plain: type[BaseModel] | None = None
    """A model whose text is its structured content, indented, so that the text is made of the structured content."""
    is_wrapped: bool = False
    """Whether structured content is ``{"result": …}`` around the value."""
    notation: Notation | None = None
    """The function that writes the text of data; ``None`` for JSON."""
    plain_value: PlainValue | None = None
    """The values that the compiled part writes itself."""

    def noted(self, notation: Notation | None) -> Output:
        """This conversion with texts in another notation."""
        if notation is None:
            return self
        # Python writes the whole result, since the compiled part writes JSON texts only.
        return replace(self, kind="custom" if self.kind == "structured" else self.kind, notation=notation)

    def result(self, value: Any) -> CallToolResult | InputRequiredResult:
        """The result of a returned value."""
        if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
            return InputRequiredResult.model_validate(value)
        if is_kind(type(value), CallToolResult, "CallToolResult"):
            whole = CallToolResult.model_validate(value)
            if self.check is not None and not whole.is_error:
                self.check(whole.structured_content)
            return whole
        if self.notation is not None:
            return CallToolResult.model_validate_json(self.finish(value))
        content = content_of(value)
        if self.structure is None:
            return CallToolResult(content=content)
        return CallToolResult(content=content, structured_content=self.structure(value))

    def data(self, value: Any) -> Data | bytes:
        """Data as structured content and text; for any other value, the whole result."""
        is_plain = type(value) is self.plain
        if self.structure_json is None or not (is_plain or _is_data(value)):
            return self.finish(value)
        structured = self.structure_json(value)
        return structured, True if is_plain else _text_of_data(value, None if self.is_wrapped else structured)

    def finish(self, value: Any) -> bytes:
        """The result of a returned value as JSON, without the members that the transport adds."""
        cls = type(value)
        if is_kind(cls, InputRequiredResult, "InputRequiredResult"):
            raise InputRequired(InputRequiredResult.model_validate(value))
        if is_kind(cls, CallToolResult, "CallToolResult"):
            if self.check is not None and not (value.is_error if hasattr(value, "is_error") else value.isError):
                self.check(value.structured_content if hasattr(value, "is_error") else value.structuredContent)
            return result_json(value)
        structured = None if self.structure_json is None else self.structure_json(value)
        content = content_json(value) if self.notation is None else self._noted_json(value, structured, self.notation)
        if structured is None:
            return b'{"content":' + content + b',"isError":false}'
        return b'{"content":' + content + b',"structuredContent":' + structured + b',"isError":false}'

    def _noted_json(self, value: Any, structured: bytes | None, notation: Notation) -> bytes:
        """The content of a value: data in the notation, made of its structured content; any other value unchanged."""
        if isinstance(value, str) or value is None or not _is_all_data(value):
            return content_json(value)
        data = from_json(to_json(value, fallback=str) if structured is None else structured)
        if structured is not None and self.is_wrapped:
            data = data["result"]
        text = notation(data, value)
        return content_json(value) if text is None else text_json(text)


def _text_of_data(value: Any, structured: bytes | None) -> bytes | Literal[True]:
    """The text of data. If it equals the structured content, the compiled part indents it."""
    if structured is not None and to_json(value, fallback=str) == structured:
        return True
    return to_json(value, fallback=str, indent=2)


def _is_data(value: Any) -> bool:
    """Whether a value becomes one text block of its JSON: no text, no content, no list, no whole result."""
    # No union: isinstance with a union takes three times as long.
    if isinstance(value, (dict, int, float)):
        return True
    if value is None or isinstance(value, str | list | tuple):
        return False
    cls = type(value)
    return not (returns_content(cls) or is_kind(cls, (CallToolResult, InputRequiredResult), *_WHOLE))


def _is_all_data(value: Any) -> bool:
    """Whether a value contains no content blocks, pictures or sounds."""
    if isinstance(value, list | tuple):
        return all(_is_all_data(one) for one in value)
    return not returns_content(type(value))


_WHOLE = ("CallToolResult", "InputRequiredResult")


def result_json(result: Any) -> bytes:
    """A whole result, mcpace's or the official SDK's, as JSON."""
    text: str = result.model_dump_json(by_alias=True, exclude_none=True, exclude={"result_type"})
    return text.encode()


def unstructured() -> Output:
    """The conversion for a tool without an output schema."""
    return Output("text", None, None, None, None)


def output_of(function: Callable[..., Any], structured: bool | None = None) -> Output:
    """The conversion of a function's values. ``structured`` requires a schema, forbids it, or leaves it to the
    annotation."""
    name = name_of(function)
    if structured is False:
        return unstructured()
    annotation = signature_of(function).return_annotation
    if annotation is inspect.Signature.empty and structured is True:
        raise InvalidSignature(f"Function {name}: return annotation required for structured output")
    try:
        inspected = inspect_annotation(annotation, annotation_source=AnnotationSource.FUNCTION)
    except ForbiddenQualifier as error:
        raise InvalidSignature(f"Function {name}: return annotation contains an invalid type qualifier") from error
    returned = inspected.type
    if returned is UNKNOWN or _asks(returned):
        return unstructured()

    if is_union_origin(get_origin(returned)):
        arms = get_args(returned)
        # Questions to the client are no data: the schema describes the other values.
        rest = tuple(arm for arm in arms if not _asks(arm))
        if not rest:
            return unstructured()
        if len(rest) != len(arms):
            annotation = rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007 - of a tuple known at run time
            inspected = inspect_annotation(annotation, annotation_source=AnnotationSource.FUNCTION)
            returned = inspected.type
        if len(rest) > 1 and any(is_kind(arm, CallToolResult, "CallToolResult") for arm in rest):
            raise InvalidSignature(
                f"Function {name}: CallToolResult cannot be used in Union or Optional types. "
                "To return empty results, use: CallToolResult(content=[])"
            )

    if is_kind(returned, CallToolResult, "CallToolResult"):
        if not inspected.metadata:
            return unstructured()
        # `Annotated[CallToolResult, Model]`: the tool makes the whole result, and this is its structured content.
        returned = inspected.metadata[0]
        annotation = Annotated[(returned, *inspected.metadata[1:])] if len(inspected.metadata) > 1 else returned

    if structured is None and returns_content(returned):
        return unstructured()

    try:
        model, wrapped = model_of(annotation, returned, name)
        if model is not None:
            # With constraints in the annotation, every value must be validated by pydantic.
            return _structured_output(model, wrapped, returned, returned if annotation == returned else None)
    except NO_SCHEMA as error:
        logger.info("Cannot create schema for type %s in %s: %s: %s", returned, name, type(error).__name__, error)
    if structured is True:
        raise InvalidSignature(f"Function {name}: return type {returned} is not serializable for structured output")
    return unstructured()


def _asks(kind: Any) -> bool:
    return is_kind(kind, InputRequiredResult, "InputRequiredResult")


def _structured_output(model: Any, wrapped: bool, returned: Any, bare: Any) -> Output:
    """``bare`` is the type if the annotation has no constraints beside it."""
    adapter = adapter_of(model)
    schema = schema_of(adapter)
    # The adapter's own methods collect keywords at each call, which takes longer than the work itself.
    validate, write = adapter.validator.validate_python, adapter.serializer.to_json

    def structure(value: Any) -> Any:
        valid = validate({"result": value} if wrapped else value, by_alias=True, by_name=True)
        if isinstance(valid, BaseModel):
            # The instance's own serializer, so that a subclass keeps its fields.
            return valid.model_dump(mode="json", by_alias=True)
        return adapter.dump_python(valid, mode="json", by_alias=True)

    def structure_json(value: Any) -> bytes:
        valid = validate({"result": value} if wrapped else value, by_alias=True, by_name=True)
        if isinstance(valid, BaseModel):
            return valid.__pydantic_serializer__.to_json(valid, by_alias=True)
        return write(valid, by_alias=True)

    def structure_number(value: Any) -> bytes:
        if type(value) is returned:
            return b'{"result":' + to_json(value) + b"}"
        return structure_json(value)

    is_number = wrapped and bare in (int, bool)
    return Output(
        kind="wrapped-text" if wrapped and bare is str else "structured",
        schema=schema,
        structure=structure,
        structure_json=structure_number if is_number else structure_json,
        check=validate,
        plain=returned if is_plain(returned) else None,
        is_wrapped=wrapped,
        plain_value=_plain_value(bare),
    )


_PLAIN_VALUES: tuple[tuple[Any, PlainValue], ...] = (
    (int, "int"),
    (bool, "bool"),
    (dict[str, int], "dict[int]"),
    (dict[str, bool], "dict[bool]"),
    (dict[str, str], "dict[str]"),
    (dict[str, Any], "dict"),
)


def _plain_value(bare: Any) -> PlainValue | None:
    return next((plain for kind, plain in _PLAIN_VALUES if kind == bare), None)
