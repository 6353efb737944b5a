"""The type of structured content, derived from the return annotation, and its JSON schema.

The official SDK's rules decide which annotations have one, and when a value is wrapped as ``{"result": …}``.

Design constraint: all of it is known at registration, where a type that can't be serialized is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import GenericAlias
from typing import Annotated, Any, NotRequired, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import SchemaError
from typing_extensions import ReadOnly, TypedDict, get_type_hints, is_typeddict
from typing_inspection.introspection import AnnotationSource, ForbiddenQualifier, inspect_annotation

# Exceptions of pydantic and typing for types that have no schema.
NO_SCHEMA = (PydanticUserError, ForbiddenQualifier, NameError, TypeError, ValueError, AttributeError, SchemaError)


def model_of(annotation: Any, returned: Any, name: str) -> tuple[Any, bool]:
    """The type that structured content is validated against, if any, and whether values are wrapped for it."""
    if isinstance(returned, GenericAlias):
        arguments = get_args(returned)
        if get_origin(returned) is dict and len(arguments) == 2 and arguments[0] is str:
            return Annotated[returned, Field(title=f"{name}DictOutput")], False
        return _wrapper_model(name, annotation), True
    if not isinstance(returned, type):
        return _wrapper_model(name, annotation), True
    if issubclass(returned, BaseModel) or is_typeddict(returned):
        return returned, False
    if returned in (str, int, float, bool, bytes, type(None)):
        return _wrapper_model(name, annotation), True
    hints = get_type_hints(returned)
    return (_model_of_class(returned, hints), False) if hints else (None, False)


def _wrapper_model(name: str, annotation: Any) -> type[BaseModel]:
    return create_model(f"{name}Output", result=annotation)


_NO_DEFAULT = object()


def _model_of_class(cls: type[Any], hints: dict[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for field, hint in hints.items():
        if not field.startswith("_"):
            default = getattr(cls, field, _NO_DEFAULT)
            fields[field] = hint if default is _NO_DEFAULT else (hint, default)
    return create_model(cls.__name__, __config__=ConfigDict(from_attributes=True), **fields)


def adapter_of(model: Any) -> TypeAdapter[Any]:
    """The adapter that validates and serializes a type."""
    return TypeAdapter(_readable_type(model))


def schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON schema of a type. Raises an error for a type that has none."""
    return _inline_root(adapter.json_schema(schema_generator=_Strict))


class _Strict(GenerateJsonSchema):
    """Raises errors instead of warnings, so that registration refuses types that can't be serialized."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise ValueError(f"JSON schema warning: {kind} - {detail}")


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replaces a root that is a reference by an object, which all revisions before 2026-07-28 require."""
    reference = schema.get("$ref")
    prefix = "#/$defs/"
    if not isinstance(reference, str) or not reference.startswith(prefix):
        return schema
    definition: dict[str, Any] = schema["$defs"][reference.removeprefix(prefix)]
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def _readable_type(model: Any) -> Any:
    """An equivalent of ``typing.TypedDict`` that pydantic accepts before Python 3.12."""
    if sys.version_info >= (3, 12) or not is_typeddict(model) or type(model).__module__ != "typing":
        return model
    items: dict[str, Any] = {}
    for key, hint in get_type_hints(model, include_extras=True).items():
        inspected = inspect_annotation(hint, annotation_source=AnnotationSource.TYPED_DICT)
        item: Any = Annotated[(inspected.type, *inspected.metadata)] if inspected.metadata else inspected.type
        if "read_only" in inspected.qualifiers:
            item = ReadOnly[item]
        required = key in model.__required_keys__ or "required" in inspected.qualifiers
        items[key] = item if required and "not_required" not in inspected.qualifiers else NotRequired[item]
    rebuilt = cast("Callable[[str, dict[str, Any]], type[Any]]", TypedDict)(model.__name__, items)
    for attribute in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(model, attribute):
            setattr(rebuilt, attribute, getattr(model, attribute))
    return rebuilt


# Schemas and settings of pydantic-core that serialize a value alike in any context.
_MODELS = {"model", "model-fields", "model-field", "definitions", "definition-ref"}
_WITHIN = {"list", "dict", "nullable", "default"}
_SCALARS = {"int", "float", "str", "bool", "none", "literal", "date", "time", "datetime", "uuid", "decimal"}
_SETTINGS = {"title", "frozen", "from_attributes", "validate_by_name", "validate_by_alias", "str_max_length"}
_NO_PARTS = {"config", "metadata", "default", "expected", "cls"}


def is_plain(returned: Any) -> bool:
    """Whether an instance's text certainly equals its structured content: a model of plain fields without custom
    serializers."""
    if not (isinstance(returned, type) and issubclass(returned, BaseModel)):
        return False
    left: list[Any] = [returned.__pydantic_core_schema__]
    while left:
        part = left.pop()
        if not isinstance(part, dict):
            left.extend(part if isinstance(part, list) else ())
            continue
        is_odd = any(
            part.get(name) for name in ("serialization", "root_model", "extra_behavior", "revalidate_instances")
        )
        if is_odd or part["type"] not in _MODELS | _WITHIN | _SCALARS or not part.get("config", {}).keys() <= _SETTINGS:
            return False
        # The names of fields are not settings.
        left.extend(part.get("fields", {}).values())
        left.extend(value for key, value in part.items() if key != "fields" and key not in _NO_PARTS)
    return True
