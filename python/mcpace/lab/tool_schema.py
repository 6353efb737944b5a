"""Facts of a tool's listing and results: arguments, whether it is read-only, sizes, kinds of content.

Argument values are invented only for tools that are marked read-only, and only by :func:`example_arguments`: a wrong
value could make a working tool fail, or make it act on the wrong object. A listing is untrusted input: a malformed
schema counts as one without required arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mcpace.lab.errors import UsageProblem

ECHO = "echo"
"""A tool of this name returns its argument, so any text is a valid argument."""
ECHO_TEXT = "mcpace"

SAMPLES = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "mcpace@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "hostname": "example.com",
}
"""Strings by the schema's ``format``."""

ToolListing = Mapping[str, Any]


def fixed_arguments(tool: ToolListing) -> dict[str, Any]:
    """Required arguments whose value the schema gives as ``default`` or ``const``. ``echo`` gets any text."""
    properties = _schema_members(_schema_members(tool.get("inputSchema")).get("properties"))
    found: dict[str, Any] = {}
    for name in required_names(tool):
        own = _schema_members(properties.get(name))
        for key in ("default", "const"):
            if key in own:
                found[name] = own[key]
        if (
            name not in found
            and tool.get("name") == ECHO
            and own.get("type", "string") == "string"
            and "enum" not in own
        ):
            found[name] = ECHO_TEXT
    return found


def example_arguments(tool: ToolListing) -> dict[str, Any]:
    """Required arguments of a read-only tool: an example of the schema, or the simplest value that the schema permits.

    Only the values of :func:`fixed_arguments` for other tools. Arguments whose schema is too complex are missing.
    """
    found = fixed_arguments(tool)
    if not is_read_only(tool):
        return found
    schema = _schema_members(tool.get("inputSchema"))
    properties = _schema_members(schema.get("properties"))
    whole = _schema_members(_first_example(schema))
    for name in required_names(tool):
        if name in found:
            continue
        values = [whole[name]] if name in whole else _simple_values(_schema_members(properties.get(name)))
        if values:
            found[name] = values[0]
    return found


def _first_example(schema: Mapping[str, Any]) -> object:
    examples = schema.get("examples")
    return examples[0] if isinstance(examples, list) and examples else schema.get("example")


def _simple_values(schema: Mapping[str, Any]) -> list[Any]:
    """At most one value that the schema permits, by its example, ``enum`` or type."""
    if (example := _first_example(schema)) is not None:
        return [example]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"][:1])
    match schema.get("type"):
        case "boolean":
            return [False]
        case "integer" | "number" if "multipleOf" not in schema:
            return _simple_number(schema)
        case "string" if "pattern" not in schema and ("format" not in schema or str(schema["format"]) in SAMPLES):
            text = SAMPLES.get(str(schema.get("format")), ECHO_TEXT)
            least, most = schema.get("minLength", 0), schema.get("maxLength", len(text))
            is_permitted = isinstance(least, int) and isinstance(most, int) and least <= len(text) <= most
            return [text] if is_permitted else []
        case "array" if "minItems" not in schema:
            return [[]]
    return []


def _simple_number(schema: Mapping[str, Any]) -> list[int]:
    low, high = schema.get("minimum", 1), schema.get("maximum")
    limits = [value for value in (low, high) if value is not None]
    if not all(isinstance(value, int) for value in limits) or {"exclusiveMinimum", "exclusiveMaximum"} & set(schema):
        return []
    value = int(low) if high is None else min(int(low), int(high))
    return [value]


def required_names(tool: ToolListing) -> list[str]:
    """Names of the required arguments."""
    names = _schema_members(tool.get("inputSchema")).get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def missing_arguments(tool: ToolListing, values: Mapping[str, Any]) -> list[str]:
    """The required arguments that are not among ``values``."""
    return [name for name in required_names(tool) if name not in values]


def is_read_only(tool: ToolListing) -> bool:
    """Whether the server marks the tool as one that changes nothing."""
    return _schema_members(tool.get("annotations")).get("readOnlyHint") is True


def is_callable(tool: ToolListing) -> bool:
    """Whether the tool can be called without arguments from the user."""
    return not missing_arguments(tool, fixed_arguments(tool))


def easiest_tools(tools: Iterable[ToolListing]) -> list[ToolListing]:
    """Tools that can be called without arguments from the user, read-only tools first."""
    return sorted((tool for tool in tools if is_callable(tool)), key=lambda tool: not is_read_only(tool))


def require_arguments(tool: ToolListing, values: Mapping[str, Any], options: str) -> None:
    """Raises :class:`UsageProblem` where required arguments are missing.

    ``options`` names the command line options for them.
    """
    if names := missing_arguments(tool, values):
        raise UsageProblem(missing_message(tool, names, options))


def missing_message(tool: ToolListing, names: list[str], options: str) -> str:
    """Message for missing arguments: ``git_status needs repo_path; give --tool and --args``."""
    return f"{tool.get('name')} needs {' and '.join(', '.join(names).rsplit(', ', 1))}; give {options}"


def listing_bytes(tools: Iterable[ToolListing]) -> int:
    """Size of the tools' descriptions as JSON in UTF-8."""
    return len(json.dumps(list(tools), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def result_kinds(result: dict[str, Any]) -> list[str]:
    """The kinds of content in a tool's result: ``text``, ``image image/png``, ``structured``."""
    content = result.get("content")
    kinds = {_content_kind(part) for part in content if isinstance(part, dict)} if isinstance(content, list) else set()
    if result.get("structuredContent") is not None:
        kinds.add("structured")
    return sorted(kinds)


def _content_kind(part: dict[str, Any]) -> str:
    inner = part.get("resource")
    media = (inner if isinstance(inner, dict) else part).get("mimeType")
    return " ".join(word[:80] for word in (part.get("type"), media) if isinstance(word, str))


def _schema_members(schema: object) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}
