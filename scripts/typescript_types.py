"""Generates TypeScript interfaces of pydantic models from their JSON schema.

Design constraint: knows only the shapes that the page's model and the contexts of findings use; any other shape fails
here rather than being guessed. Members that may be absent are optional, as they are left out of the JSON.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

PREFIX = "#/$defs/"


def interfaces(source: str, *models: type[BaseModel]) -> str:
    """Interfaces of these models and of all models in them. ``source`` is the file that defines the models."""
    _, schema = models_json_schema([(model, "serialization") for model in models], by_alias=True)
    parts = [f"// Made by `make docs` from {source}: change it there."]
    for name, definition in sorted(schema["$defs"].items()):
        lines = [f"export interface {name} {{"]
        for member, shape in definition["properties"].items():
            lines += _comment(shape)
            inner, absent = _without_null(shape)
            lines.append(f"  {member}{'?' if absent else ''}: {_type(inner)};")
        parts.append("\n".join([*_comment(definition, ""), *lines, "}"]))
    return "\n\n".join(parts) + "\n"


def _comment(shape: dict[str, Any], indent: str = "  ") -> list[str]:
    text = " ".join(shape.get("description", "").split())
    return [f"{indent}/** {text} */"] if text else []


def _without_null(shape: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    choices = shape.get("anyOf")
    if choices is None or {"type": "null"} not in choices:
        return shape, False
    rest = [choice for choice in choices if choice != {"type": "null"}]
    return (rest[0] if len(rest) == 1 else {"anyOf": rest}), True


def _type(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"]).removeprefix(PREFIX)
    if "enum" in shape or "const" in shape:
        return " | ".join(json.dumps(value) for value in shape.get("enum", [shape.get("const")]))
    if "anyOf" in shape:
        return " | ".join(_type(choice) for choice in shape["anyOf"])
    match shape.get("type"):
        case "array" if "prefixItems" in shape:
            return f"[{', '.join(_type(item) for item in shape['prefixItems'])}]"
        case "array":
            inner = _type(shape["items"])
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object" if isinstance(shape.get("additionalProperties"), dict):
            return f"Record<string, {_type(shape['additionalProperties'])}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as name:
            return str(name)
        case _:
            raise ValueError(f"no TypeScript for {shape}")
