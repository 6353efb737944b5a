"""The arguments of a function, derived from its signature: their JSON Schema, and the conversion of a call's JSON.

The schema and all messages equal the official SDK's, since models and clients are tuned to them. Validation has two
paths. The fast path converts the bytes of the call to keyword arguments within pydantic's compiled core. The plain path
parses first, decodes JSON strings that were sent for parameters of other types (some hosts send such), and then
validates. The fast path is used only if both agree. The plain path decides about everything that the fast path refuses.

Design constraint: all decisions are made at registration; no call inspects a signature.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, SchemaError, SchemaValidator, from_json

from mcpace.server.errors import InvalidArguments, InvalidSignature
from mcpace.server.registration.markers import refuse_markers

Validate = Callable[[bytes], dict[str, Any]]


class ArgumentsBase(BaseModel):
    """Base of the models that hold a function's arguments."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that a function takes from the client."""

    model: type[BaseModel]
    schema: dict[str, Any]
    """The JSON Schema of the arguments object."""
    names: tuple[str, ...]
    """As they are sent."""
    parameters: Mapping[str, str]
    """Maps the model's fields to the function's parameters. They differ for names that the model's own methods use."""
    validate_json: Validate
    """Converts a call's JSON to keyword arguments. Raises ``InvalidArguments``."""
    fast_path: Validate | None = None
    """The fast path: pydantic's own validator, which raises ``ValidationError`` for arguments that need the plain path.
    ``None`` if the function has no fast path."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Converts parsed arguments to keyword arguments on the plain path. Raises ``InvalidArguments``."""
        return _plain_validator(self.model, self.parameters, dict(arguments))


def is_async(function: Any) -> bool:
    """Whether a call of the function returns a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or (
        callable(function) and inspect.iscoroutinefunction(type(function).__call__)
    )


def name_of(function: Any) -> str:
    """A function's own name; a callable object's class."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature with evaluated annotations. Raises ``InvalidSignature`` if they can't be evaluated, or if a
    parameter can't be passed by name.
    """
    name = name_of(function)
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise InvalidSignature(
            f"Unable to evaluate type annotations for callable {name!r}: {error}. Annotations must name what its "
            "module has by then: move the import out of `if TYPE_CHECKING:`, or the class out of the function"
        ) from error
    except (TypeError, ValueError, SyntaxError, AttributeError) as error:
        raise InvalidSignature(f"Unable to read the signature of callable {name!r}: {error}") from error
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise InvalidSignature(
                f"Parameter {stars}{parameter.name} of {name}: a client sends named arguments that a schema lists; "
                "give each a parameter, or take one `dict[str, Any]`"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidSignature(f"Parameter {parameter.name} of {name} is positional only; a client sends names")
    return signature


def arguments_of(function: Callable[..., Any], skip: Collection[str] = ()) -> Arguments:
    """The arguments of a function, without the parameters in ``skip``, which the server fills in."""
    name = name_of(function)
    fields: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    for parameter in signature_of(function).parameters.values():
        if parameter.name.startswith("_"):
            raise InvalidSignature(f"Parameter {parameter.name} of {name} cannot start with '_'")
        if parameter.name in skip:
            continue
        refuse_markers(name, [parameter])
        try:
            field, definition = _field_of(parameter)
        except Exception as error:
            raise InvalidSignature(
                f"Parameter {parameter.name} of {name}: {parameter.annotation!r} has no JSON Schema: no type"
            ) from error
        fields[field] = definition
        parameters[field] = parameter.name
    try:
        model = create_model(f"{name}Arguments", __base__=ArgumentsBase, **fields)
        schema = model.model_json_schema()
    except Exception as error:  # pydantic's exceptions for values that are no types have no common base.
        raise InvalidSignature(_unsupported_parameter(name, fields, error)) from error
    validate_json, fast_path = _fast_validator(model, parameters)
    return Arguments(
        model=model,
        schema=schema,
        names=tuple(info.alias or field for field, info in model.model_fields.items()),
        parameters=parameters,
        validate_json=validate_json,
        fast_path=fast_path,
    )


def _field_of(parameter: inspect.Parameter) -> tuple[str, Any]:
    metadata: list[Any] = []
    options: dict[str, Any] = {}
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        annotation = Any
        metadata.append(WithJsonSchema({"title": parameter.name, "type": "string"}))
    field = parameter.name
    if callable(getattr(BaseModel, field, None)):
        # A field of this name would hide a method of the model.
        options["alias"] = field
        field = f"field_{field}"
    definition: Any = Annotated[(annotation, *metadata, Field(**options))]
    if parameter.default is not inspect.Parameter.empty:
        definition = (definition, parameter.default)
    return field, definition


def _unsupported_parameter(name: str, fields: Mapping[str, Any], error: Exception) -> str:
    """A sentence that names the unsupported parameter, which is found by trying each one alone."""
    for field, definition in fields.items():
        try:
            create_model(name, __base__=ArgumentsBase, **{field: definition}).model_json_schema()
        except Exception as own:
            annotated = definition[0] if isinstance(definition, tuple) else definition
            written = get_args(annotated)[0]
            shown = getattr(written, "__qualname__", None) or str(written)
            reason = _first_line(own)
            return (
                f"Parameter {field} of {name}: {shown} has no JSON Schema ({reason}). Use a type that JSON can carry, "
                "or a pydantic type with a schema of its own"
            )
    return f"The parameters of {name} have no JSON Schema: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# The plain way -------------------------------------------------------------------------------------------------------


def _plain_validator(
    model: type[BaseModel], parameters: Mapping[str, str], arguments: dict[str, Any]
) -> dict[str, Any]:
    try:
        instance = model.model_validate(_strings_parsed(model, arguments))
    except ValidationError as error:
        raise InvalidArguments(str(error)) from error
    return {parameter: getattr(instance, field) for field, parameter in parameters.items()}


def _strings_parsed(model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, FieldInfo] = {}
    for field, info in model.model_fields.items():
        known[field] = info
        if info.alias:
            known[info.alias] = info
    for key, value in arguments.items():
        if isinstance(value, str) and key in known and known[key].annotation is not str:
            try:
                parsed = json.loads(value)
            except (ValueError, RecursionError):
                continue
            # Text that parses as a string or a number was meant as text.
            if not isinstance(parsed, str | int | float):
                arguments[key] = parsed
    return arguments


def _parse_arguments(raw: bytes) -> dict[str, Any]:
    try:
        arguments = from_json(raw)
    except ValueError as error:
        # The runtime has checked that it is JSON. The remaining fault is a lone surrogate, which is no text (RFC 8259,
        # 8.2).
        raise InvalidArguments(f"the arguments are no text: {_first_line(error)}") from error
    return arguments if isinstance(arguments, dict) else {}


# The fast path -------------------------------------------------------------------------------------------------------

# Text that may begin JSON other than a string or a number: `[`, `{` or `null` after white space.
_SUSPICIOUS = tuple("[{n \t\r\n")
_SUSPICIOUS_BYTES = tuple(mark.encode() for mark in _SUSPICIOUS)

# Core schemas that take no text which could also be read as a list, an object or null.
_NO_TEXT = frozenset(
    {"int", "float", "bool", "none", "complex", "decimal", "list", "set", "frozenset", "tuple", "dict", "model"}
    | {"dataclass", "typed-dict", "date", "time", "datetime", "timedelta", "uuid", "url", "multi-host-url"}
    | {"is-instance", "is-subclass", "callable"}
)
# Choices of a union that JSON distinguishes; at most one array and one object.
_SCALARS = frozenset({"none", "int", "float", "bool", "str"})
_ARRAYS = frozenset({"list", "set", "frozenset", "tuple"})
_OBJECTS = frozenset({"dict", "model", "typed-dict", "dataclass"})


def _fast_validator(model: type[BaseModel], parameters: Mapping[str, str]) -> tuple[Validate, Validate | None]:
    """The validator that decides, and the fast path that is equivalent if it raises nothing."""

    def plain(raw: bytes) -> dict[str, Any]:
        return _plain_validator(model, parameters, _parse_arguments(raw))

    schema, definitions = _unwrapped(model.__pydantic_core_schema__)
    if schema.get("type") != "model" or schema["schema"].get("type") != "model-fields":
        return plain, None
    fields = schema["schema"]["fields"]
    ways = {name: _validation_path(model, name, field["schema"], definitions) for name, field in fields.items()}
    if "plain" in ways.values() or any(_reads_differ(field["schema"], definitions) for field in fields.values()):
        return plain, None
    try:
        fast_path = SchemaValidator(_typed_dict(schema, definitions, parameters)).validate_json
    except SchemaError:
        return plain, None
    checked = tuple(parameters[name] for name, way in ways.items() if way == "check")

    def validate(raw: bytes) -> dict[str, Any]:
        try:
            return fast_path(raw)  # type: ignore[no-any-return]
        except ValidationError:
            return plain(raw)

    def validate_checked(raw: bytes) -> dict[str, Any]:
        try:
            keywords: dict[str, Any] = fast_path(raw)
        except ValidationError:
            return plain(raw)
        for name in checked:
            value = keywords[name]
            if (isinstance(value, str) and value.startswith(_SUSPICIOUS)) or (
                isinstance(value, bytes) and value.startswith(_SUSPICIOUS_BYTES)
            ):
                return plain(raw)
        return keywords

    return (validate_checked, None) if checked else (validate, fast_path)


def _unwrapped(schema: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    definitions: dict[str, Any] = {}
    while schema.get("type") in ("definitions", "definition-ref"):
        if schema["type"] == "definitions":
            definitions |= {one["ref"]: one for one in schema["definitions"]}
            schema = schema["schema"]
        else:
            schema = definitions[schema["schema_ref"]]
    return schema, definitions


def _typed_dict(schema: dict[str, Any], definitions: Mapping[str, Any], parameters: Mapping[str, str]) -> CoreSchema:
    """The model's fields as a typed dictionary by parameter, which avoids creating a model instance."""
    fields = {}
    for name, field in schema["schema"]["fields"].items():
        entry = {
            "type": "typed-dict-field",
            "schema": field["schema"],
            "required": field["schema"]["type"] != "default",
        }
        alias = field.get("validation_alias")
        parameter = parameters[name]
        if alias is not None and alias != parameter:
            entry["validation_alias"] = alias
        fields[parameter] = entry
    typed: Any = {"type": "typed-dict", "fields": fields, "config": dict(schema.get("config", {}))}
    if definitions:
        typed = {"type": "definitions", "schema": typed, "definitions": list(definitions.values())}
    return typed  # type: ignore[no-any-return]


def _validation_path(model: type[BaseModel], name: str, schema: Any, definitions: Mapping[str, Any]) -> str:
    """`fast`; `check` if text that came through must be examined; `plain` if only the plain path is right."""
    if model.model_fields[name].annotation is str:
        return "fast"
    return _way_of(schema, definitions, frozenset())


def _way_of(schema: Any, definitions: Mapping[str, Any], seen: frozenset[str]) -> str:
    kind = schema["type"]
    if kind in _NO_TEXT:
        return "fast"
    if kind in ("str", "any", "bytes"):
        return "check"
    if kind == "definition-ref":
        reference = schema["schema_ref"]
        if reference in seen:
            return "fast"
        return _way_of(definitions[reference], definitions, seen | {reference}) if reference in definitions else "plain"
    if kind in ("default", "nullable", "function-after"):
        return _way_of(schema["schema"], definitions, seen)
    if kind == "union":
        ways = {_way_of(choice, definitions, seen) for choice in _union_choices(schema)}
        return "plain" if "plain" in ways else "check" if "check" in ways else "fast"
    if kind == "tagged-union":
        return "fast"
    if kind == "literal":
        return _way_of_values(schema["expected"])
    if kind == "enum":
        return _way_of_values(member.value for member in schema["members"])
    return "plain"


def _way_of_values(values: Iterable[Any]) -> str:
    texts = (value for value in values if isinstance(value, str))
    return "plain" if any(text.startswith(_SUSPICIOUS) and _is_no_scalar(text) for text in texts) else "fast"


def _is_no_scalar(text: str) -> bool:
    try:
        return not isinstance(json.loads(text), str | int | float)
    except ValueError:
        return False


def _union_choices(union: Any) -> list[Any]:
    return [choice[0] if isinstance(choice, tuple) else choice for choice in union["choices"]]


def _reads_differ(schema: Any, definitions: Mapping[str, Any]) -> bool:
    """Whether there is, at any depth, a decimal, or a union of which the two ways could choose different arms.

    Read as JSON, what text stands for (a date, bytes) is as good as a string; read after parsing, a string is a string.
    A decimal of ``1.0`` has one digit read as JSON, and two read after parsing.
    """
    pending = [schema, *definitions.values()]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get("type") == "decimal":
                return True
            if node.get("type") == "union":
                kinds = [_schema_kind(choice, definitions) for choice in _union_choices(node)]
                arrays, objects = (sum(kind in family for kind in kinds) for family in (_ARRAYS, _OBJECTS))
                scalars = sum(kind in _SCALARS for kind in kinds)
                is_one = len([kind for kind in kinds if kind != "none"]) <= 1
                if not is_one and (arrays > 1 or objects > 1 or scalars + arrays + objects < len(kinds)):
                    return True
            pending.extend(value for key, value in node.items() if key not in ("serialization", "metadata", "cls"))
        elif isinstance(node, list | tuple):
            pending.extend(node)
    return False


def _schema_kind(schema: Any, definitions: Mapping[str, Any]) -> str:
    while schema["type"] in ("nullable", "default", "function-after", "definition-ref", "json-or-python"):
        if schema["type"] == "definition-ref":
            if schema["schema_ref"] not in definitions:
                return "enum"
            schema = definitions[schema["schema_ref"]]
            continue
        schema = schema["json_schema"] if schema["type"] == "json-or-python" else schema["schema"]
    kind: str = schema["type"]
    # A custom validator may convert text to any value, so its schema is treated like the riskiest kind.
    return "enum" if kind.startswith("function-") or kind == "lax-or-strict" else kind
