"""JSON Schemas of arguments and results as in FastMCP, with their validators.

A schema of arguments lacks the titles that pydantic derives from names, refuses unknown arguments, takes descriptions
from the docstring where the annotations have none, and has its references resolved.

Design constraint: pydantic's schema of a call is the source of both the JSON Schema and the validation, so the two
agree and validation errors are worded as FastMCP's. Both are built at registration.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin

from pydantic import Field, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic import ValidationError as PydanticValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, from_json
from typing_extensions import TypeAliasType

from mcpace.fastmcp.content import is_media
from mcpace.server.errors import InvalidArguments, InvalidSignature
from mcpace.server.registration.markers import refuse_markers
from mcpace.server.registration.signature import Arguments, ArgumentsBase, name_of, signature_of
from mcpace.types import CallToolResult, InputRequiredResult, is_content_type, is_kind

ResultT = TypeVar("ResultT")


# Arguments -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallArguments(Arguments):
    """A function's arguments, validated as a call of the function."""

    adapter: TypeAdapter[Any] | None = None

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validates parsed arguments and returns keyword arguments. Raises ``InvalidArguments``."""
        assert self.adapter is not None
        try:
            return dict(self.adapter.validate_python(dict(arguments)))
        except PydanticValidationError as error:
            raise InvalidArguments(str(error)) from error

    def strictly(self) -> Callable[[bytes], dict[str, Any]]:
        """A validator that converts no types."""
        assert self.adapter is not None
        return _validator(self.adapter, strict=True)


def arguments_of(function: Callable[..., Any], descriptions: Mapping[str, str]) -> CallArguments:
    """The arguments of a function. Raises ``InvalidSignature`` for types that have no JSON Schema."""
    name = name_of(function)
    signature = signature_of(function)
    refuse_markers(name, signature.parameters.values())
    annotations = {one.name: _with_description(one.annotation) for one in signature.parameters.values()}

    def call(*args: Any, **keywords: Any) -> dict[str, Any]:
        return dict(zip(signature.parameters, args, strict=False)) | keywords if args else keywords

    given = [one.replace(annotation=annotations[one.name]) for one in signature.parameters.values()]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=given, return_annotation=signature.empty
    )
    call.__annotations__ = {key: value for key, value in annotations.items() if value is not signature.empty}
    call.__name__ = call.__qualname__ = name
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", call))
        raw = adapter.json_schema()
    except (PydanticUserError, TypeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InvalidSignature(
            f"The parameters of {name} have no JSON Schema: {reason}. Use types that JSON can carry, or a pydantic "
            "type with a schema of its own"
        ) from error
    schema = remove_titles(raw)
    _complete(schema, raw, descriptions)
    names = tuple(signature.parameters)
    return CallArguments(
        model=ArgumentsBase,
        schema=schema,
        names=names,
        parameters={one: one for one in names},
        validate_json=_validator(adapter),
        adapter=adapter,
    )


def _validator(adapter: TypeAdapter[Any], strict: bool | None = None) -> Callable[[bytes], dict[str, Any]]:
    validate = adapter.validator.validate_json

    def validated(raw: bytes) -> dict[str, Any]:
        try:
            return validate(raw, strict=strict)  # type: ignore[no-any-return]
        except PydanticValidationError as error:
            if strict:
                raise InvalidArguments(str(error)) from error
        # FastMCP validates parsed JSON, so this second validation decides and words the errors.
        try:
            return adapter.validator.validate_python(from_json(raw))  # type: ignore[no-any-return]
        except PydanticValidationError as error:
            raise InvalidArguments(str(error)) from error

    return validated


def _with_description(annotation: Any) -> Any:
    """Turns ``Annotated[T, "text"]`` into a field with a description, as FastMCP does."""
    if get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        if len(metadata) == 1 and isinstance(metadata[0], str):
            return Annotated[kind, Field(description=metadata[0])]
    return annotation


def _complete(schema: dict[str, Any], raw: Mapping[str, Any], descriptions: Mapping[str, str]) -> None:
    """Restores the author's own titles, and adds descriptions from the docstring."""
    title_of = GenerateJsonSchema().get_title_from_name
    for name, described in schema.get("properties", {}).items():
        title = raw["properties"][name].get("title")
        if isinstance(title, str) and title != title_of(name):
            described["title"] = title
        if name in descriptions and "description" not in described:
            described["description"] = descriptions[name]


# Docstrings ----------------------------------------------------------------------------------------------------------

_SECTION = re.compile(
    r"(Args|Arguments|Params|Parameters|Keyword Args|Keyword Arguments|Other Parameters|Returns|Return|Yields|Receives|"
    r"Raises|Exceptions|Warns|Examples|Example|Attributes|Functions|Methods|Classes|Modules)\s*:\s*"
)
_OF_PARAMETERS = ("Args", "Arguments", "Params", "Parameters")
_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_ANY_FIELD = re.compile(r":(?:param|parameter|arg|argument|type|returns?|rtype|raises?)\b[^:]*:")


def parse_docstring(function: Callable[..., Any]) -> tuple[str | None, dict[str, str]]:
    """The description of a docstring, and those of its parameters, in Google's or Sphinx's style."""
    document = inspect.getdoc(function)
    if not document:
        return None, {}
    lines = document.splitlines()
    for read in (_google, _sphinx):
        found = read(lines)
        if found is not None:
            text, parameters = found
            return "\n".join(text).strip() or None, parameters
    return document, {}


def _google(lines: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    text: list[str] = []
    parameters: dict[str, str] = {}
    is_found, index = False, 0
    while index < len(lines):
        heading = _SECTION.fullmatch(lines[index])
        body = _indented_block(lines, index + 1)
        if heading is None or not any(line.strip() for line in body):
            if not is_found:
                text.append(lines[index])
            index += 1
            continue
        is_found = True
        if heading.group(1) in _OF_PARAMETERS:
            parameters |= _items(body)
        index += 1 + len(body)
    return (text, parameters) if is_found else None


def _indented_block(lines: Sequence[str], start: int) -> list[str]:
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith((" ", "\t"))):
        end += 1
    return list(lines[start:end])


def _items(body: Sequence[str]) -> dict[str, str]:
    depth = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    items: dict[str, list[str]] = {}
    name = None
    for line in body:
        item = _ITEM.fullmatch(line.strip()) if len(line) - len(line.lstrip()) == depth else None
        if item is not None:
            name = item.group(1)
            items[name] = [item.group(2)]
        elif name is not None:
            items[name].append(line.strip())
    return {name: "\n".join(parts).strip() for name, parts in items.items()}


def _sphinx(lines: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    first = next((number for number, line in enumerate(lines) if _ANY_FIELD.match(line.strip())), None)
    if first is None:
        return None
    parameters: dict[str, str] = {}
    name = None
    for line in (one.strip() for one in lines[first:]):
        field = _FIELD.fullmatch(line)
        if field is not None:
            name = field.group(1)
            parameters[name] = field.group(2)
        elif _ANY_FIELD.match(line):
            name = None
        elif name is not None and line:
            parameters[name] += "\n" + line
    return list(lines[:first]), parameters


# Results -------------------------------------------------------------------------------------------------------------


@dataclass
class _WrappedResult(Generic[ResultT]):
    result: ResultT


def output_schema_of(returned: Any) -> dict[str, Any] | None:
    """The schema of a return annotation; ``None`` where it is missing or uninformative, or names content."""
    returned = _without_questions(returned)
    if returned in (inspect.Signature.empty, None, Any, ...) or isinstance(returned, str):
        return None
    if _is_open_sequence(returned) or _has_content(returned):
        return None
    try:
        schema = _serialization_schema(returned)
        if not is_object(schema):
            schema = _serialization_schema(_WrappedResult[returned]) | {"x-fastmcp-wrap-result": True}
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
        return None
    return remove_titles(_resolve_root(schema)) or None


def is_object(schema: Any) -> bool:
    """Whether a schema describes an object, directly or by reference."""
    seen: set[str] = set()
    target = schema
    while isinstance(target, dict):
        if target.get("type") == "object" or "properties" in target:
            return True
        reference = target.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in seen:
            return False
        seen.add(reference)
        target = _resolve_reference(schema, reference)
    return False


class _OutputSchema(GenerateJsonSchema):
    """Generates schemas in which the fields of a model have the names of its serialization."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return self._with_aliases(
            bool(schema["cls"].model_config.get("serialize_by_alias")), super().model_schema, schema
        )

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        by_alias = bool((schema.get("config") or {}).get("serialize_by_alias"))
        return self._with_aliases(by_alias, super().dataclass_schema, schema)

    def _with_aliases(self, by_alias: bool, make: Callable[[Any], JsonSchemaValue], schema: Any) -> JsonSchemaValue:
        before, self.by_alias = self.by_alias, by_alias
        try:
            return make(schema)
        finally:
            self.by_alias = before


def _serialization_schema(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(mode="serialization", by_alias=False, schema_generator=_OutputSchema)


def _resolve_alias(kind: Any) -> Any:
    while isinstance(kind, TypeAliasType) or type(kind).__name__ == "TypeAliasType":
        kind = kind.__value__
    return kind


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _without_questions(kind: Any) -> Any:
    """An annotation without the members of a union that are questions to the client, not data."""
    plain = _resolve_alias(kind)
    if not _is_union(plain):
        return kind
    arms = [
        arm for arm in get_args(plain) if not is_kind(_resolve_alias(arm), InputRequiredResult, "InputRequiredResult")
    ]
    if len(arms) == len(get_args(plain)) or not arms:
        return kind
    return Union[tuple(arms)]  # noqa: UP007 - the members are known only at run time


def _is_open_sequence(kind: Any) -> bool:
    """Whether an annotation is a sequence without an item type."""
    kind = _resolve_alias(kind)
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind in (list, tuple, Sequence):
        return True
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return arguments == (Any, ...)
    return get_origin(kind) in (list, Sequence) and all(one is Any for one in arguments)


def _has_content(kind: Any) -> bool:
    """Whether an annotation names content, complete results or bytes, for which there is no schema."""
    kind = _resolve_alias(kind)
    if isinstance(kind, type) and get_origin(kind) is None:
        names = ("CallToolResult", "ToolResult", "InputRequiredResult", "File")
        is_whole = is_kind(kind, (CallToolResult, InputRequiredResult), *names)
        return kind is bytes or is_whole or is_content_type(kind) or is_media(kind)
    return any(_has_content(one) for one in get_args(kind))


# Schemas -------------------------------------------------------------------------------------------------------------

_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LITERALS = frozenset({"default", "const", "examples", "enum", "required"})


def remove_titles(schema: Any) -> Any:
    """A schema without titles. The values of the author's own keywords (``x-…``) and defaults are unchanged."""
    if isinstance(schema, list):
        return [remove_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    clean: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _MAPS and isinstance(value, dict):
            clean[key] = {name: remove_titles(one) for name, one in value.items()}
        else:
            clean[key] = value if key in _LITERALS or key.startswith("x-") else remove_titles(value)
    return clean


def inline_references(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """A schema with all references replaced by their targets; unchanged where the references are recursive."""
    if schema is None or ("$defs" not in schema and "$ref" not in schema):
        return schema
    try:
        whole: dict[str, Any] = _inline_node(schema, schema, ())
    except RecursionError:
        return _resolve_root(schema)
    return {key: value for key, value in whole.items() if key != "$defs"}


def _inline_node(node: Any, root: dict[str, Any], above: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline_node(one, root, above) for one in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in above:
            raise RecursionError(reference)
        target = _inline_node(_resolve_reference(root, reference), root, (*above, reference))
        return target | {key: value for key, value in node.items() if key not in ("$ref", "$defs")}
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in _MAPS and key != "$defs" and isinstance(value, dict):
            result[key] = {name: _inline_node(one, root, above) for name, one in value.items()}
        elif key == "discriminator":
            continue
        else:
            result[key] = value if key in _LITERALS or key == "$defs" else _inline_node(value, root, above)
    tag = node.get("discriminator")
    if isinstance(tag, dict) and isinstance(tag.get("propertyName"), str):
        for key in ("anyOf", "oneOf"):
            result |= (
                {key: [_require_property(one, tag["propertyName"]) for one in result[key]]} if key in result else {}
            )
    return result


def _require_property(schema: dict[str, Any], name: str) -> dict[str, Any]:
    required = schema.get("required", [])
    return schema if name in required else {**schema, "required": [*required, name]}


def _resolve_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replaces a reference at the root of a schema by its target, because the protocol requires an object there."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or "$defs" not in schema:
        return schema
    target = _resolve_reference(schema, reference)
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _resolve_reference(root: Any, reference: str) -> Any:
    target = root
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name, {}) if isinstance(target, dict) else {}
    return target
