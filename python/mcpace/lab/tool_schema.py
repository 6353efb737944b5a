"""Facts of a tool's listing: its arguments, whether it is read-only, and how large the listing is.

Arguments are never invented: a value that the tool doesn't know makes a call fail that works, or work on something that
nobody meant. A server may say anything in its listing; a schema that is none requires nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mcpace.lab.errors import UsageProblem

ECHO = "echo"
"""A tool of this name answers with what it is sent, so that any text will do."""
ECHO_TEXT = "mcpace"

ToolListing = Mapping[str, Any]


def arguments(tool: ToolListing) -> dict[str, Any]:
    """The arguments that a call needs and that the schema itself gives a value for; any text for ``echo``."""
    properties = _members(_members(tool.get("inputSchema")).get("properties"))
    found: dict[str, Any] = {}
    for name in required(tool):
        own = _members(properties.get(name))
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


def required(tool: ToolListing) -> list[str]:
    """The arguments that a tool can't be called without."""
    names = _members(tool.get("inputSchema")).get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def missing(tool: ToolListing, given: Mapping[str, Any]) -> list[str]:
    """The required arguments that are not among ``given``."""
    return [name for name in required(tool) if name not in given]


def is_read_only(tool: ToolListing) -> bool:
    """Whether the server marks the tool as one that changes nothing."""
    return _members(tool.get("annotations")).get("readOnlyHint") is True


def is_callable(tool: ToolListing) -> bool:
    """Whether the tool can be called without arguments of the user's."""
    return not missing(tool, arguments(tool))


def easiest(tools: Iterable[ToolListing]) -> list[ToolListing]:
    """Tools that can be called without arguments of the user's, read-only ones first."""
    return sorted((tool for tool in tools if is_callable(tool)), key=lambda tool: not is_read_only(tool))


def require(tool: ToolListing, given: Mapping[str, Any], options: str) -> None:
    """Raises :class:`UsageProblem` where required arguments are not given. ``options``: how the user gives them."""
    if names := missing(tool, given):
        raise UsageProblem(needs(tool, names, options))


def needs(tool: ToolListing, names: list[str], options: str) -> str:
    """``git_status needs repo_path; give --tool and --args``."""
    return f"{tool.get('name')} needs {' and '.join(', '.join(names).rsplit(', ', 1))}; give {options}"


def listing_bytes(tools: Iterable[ToolListing]) -> int:
    """Size of the tools' descriptions as JSON in UTF-8."""
    return len(json.dumps(list(tools), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _members(schema: object) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}
