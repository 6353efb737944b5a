"""Values that a JSON Schema allows, for calls that the user gave no arguments for."""

from __future__ import annotations

from typing import Any

SAMPLES: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}, "null": None}


def sample(schema: dict[str, Any]) -> Any:
    """A value of a schema's type; its default or first allowed value where it has one."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    return SAMPLES.get(schema.get("type", "string"), "mcpace")
