"""Arguments that a tool's JSON Schema asks for, for calls that the user gave none for.

Design constraint: a server says there whatever it likes. What is no schema asks for nothing.
"""

from __future__ import annotations

from typing import Any

SAMPLES: dict[str, Any] = {
    "string": "mcpace", "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}, "null": None,
}  # fmt: skip
ANY = SAMPLES["string"]


def arguments(schema: object) -> dict[str, Any]:
    """A value for each argument that a tool's input schema requires."""
    properties = _members(_members(schema).get("properties"))
    return {name: sample(properties.get(name)) for name in required(schema)}


def required(schema: object) -> list[str]:
    """The arguments that a tool can't be called without."""
    names = _members(schema).get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def sample(schema: object) -> Any:
    """A value of a schema's type; its default or first allowed value where it has one."""
    members = _members(schema)
    if "default" in members:
        return members["default"]
    if isinstance(allowed := members.get("enum"), list) and allowed:
        return allowed[0]
    kinds = members.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind in SAMPLES:
            return SAMPLES[kind]
    return ANY


def _members(schema: object) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}
