"""Values that match a JSON schema: the arguments of the probes, and the answers to elicitations."""

from __future__ import annotations

from typing import Any

FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "uuid": "12345678-1234-5678-1234-567812345678",
    "binary": "YQ==",
    "base64": "YQ==",
}
DEPTH = 6


def least(schema: Any, *, everything: bool, whole: Any = None, depth: int = 0) -> Any:
    """A value that matches the schema, with all members of objects or only the required ones."""
    whole = schema if whole is None else whole
    if not isinstance(schema, dict) or depth > DEPTH:
        return "text"
    if reference := schema.get("$ref"):
        return least(_found(whole, reference), everything=everything, whole=whole, depth=depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if options := schema.get(key):
            chosen = next((one for one in options if one.get("type") != "null"), options[0])
            return least(chosen, everything=everything, whole=whole, depth=depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object" or (kind is None and "properties" in schema):
        return members(schema, everything=everything, whole=whole, depth=depth)
    if kind == "array":
        wanted = max(1 if everything else 0, schema.get("minItems", 1))
        if "prefixItems" in schema:
            return [least(one, everything=everything, whole=whole, depth=depth + 1) for one in schema["prefixItems"]]
        return [least(schema.get("items", {}), everything=everything, whole=whole, depth=depth + 1)] * wanted
    if kind in ("integer", "number"):
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        value = max(1, lowest) if "maximum" not in schema else min(max(1, lowest), schema["maximum"])
        return int(value) if kind == "integer" else value
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = FORMATS.get(schema.get("format", ""), "text")
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 1000)]


def members(schema: dict[str, Any], *, everything: bool, whole: Any = None, depth: int = 0) -> dict[str, Any]:
    whole = schema if whole is None else whole
    required = schema.get("required", [])
    return {
        name: least(one, everything=everything, whole=whole, depth=depth + 1)
        for name, one in (schema.get("properties") or {}).items()
        if name in required or (everything and depth < DEPTH)
    }


def mistaken(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments, the first of which has a wrong type."""
    properties = schema.get("properties") or {}
    if not properties:
        return None
    name, one = next(iter(properties.items()))
    wrong: Any = {"no": "such"} if one.get("type") in ("string", "array", "integer", "number", "boolean") else 3.5
    return {**members(schema, everything=False), name: wrong}


def _found(whole: Any, reference: str) -> Any:
    found = whole
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, dict) else {}
    return found
