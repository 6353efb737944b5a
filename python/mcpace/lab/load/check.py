"""Before the load: one checked conversation with the target, so that no load is put on what can't be called.

Connects, lists the tools, settles what the load is made of, and makes each of its calls once. What it learns, the
revision and the access token among it, the engine is given.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab import tool_schema
from mcpace.lab.errors import UnknownName, Unreachable, UsageProblem, said_by_tool
from mcpace.lab.load.plan import Operation
from mcpace.lab.load.settings import LoadSettings

LISTING, PING = "tools/list", "ping"
NAMED = 12
"""Tools that a sentence names."""

TEMPLATE = re.compile(r"\{\{\s*(counter|user|uuid|random|choice)\s*(?:\(\s*(-?\d+)[^)]*\)|:\s*([^}\s]+))?\s*\}\}")


@dataclass(frozen=True)
class Checked:
    """What the conversation told."""

    revision: str
    operations: list[Operation]
    notes: list[str] = field(default_factory=list)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The server's, by their names, as it described them."""


def check(client: _core.Client, settings: LoadSettings, name: str, *, careful: bool = False) -> Checked:
    """Has the conversation. ``careful``: what the user didn't name is called only where it is marked read-only.

    Raises :class:`Unreachable` where the target can't be reached or a tool answers with an error,
    :class:`UsageProblem` where the load names no tool or one that there is not.
    """
    try:
        revision = str(client.connect()["revision"])
        if settings.replay:
            return Checked(revision, list(settings.replay))
        tools = {str(tool.get("name")): tool for tool in client.list_tools()}
        if careful and not settings.mix:
            settings = replace(settings, mix=((_harmless(tools, settings.arguments, name), 1.0),))
        operations = settle(tools, settings, "--tool and --args") if careful else settle(tools, settings)
        for operation in operations:
            if operation.kind == "call":
                _call(client, operation, settings.data, name)
    except _core.ClientProblem as problem:
        raise Unreachable(f"{name}: {problem}") from problem
    return Checked(revision, operations, tools=tools)


def settle(
    tools: Mapping[str, dict[str, Any]], settings: LoadSettings, how: str = "--args TOOL=JSON"
) -> list[Operation]:
    """The operations of the load. ``how``: the options by which a user names a tool and its arguments.

    Raises :class:`UsageProblem` where that is not clear.
    """
    mix = settings.mix or ((_only(tools, settings.arguments), 1.0),)
    for tool in settings.arguments:
        if tool not in dict(mix):
            raise UsageProblem(f"--args names {tool!r}, which the load doesn't call: name it with --mix too")
    return [_operation(name, weight, tools, settings.arguments, how) for name, weight in mix]


def rendered(value: Any, data: Mapping[str, list[str]]) -> Any:
    """Arguments with each template in them replaced by a value that it may have."""
    match value:
        case dict():
            return {name: rendered(part, data) for name, part in value.items()}
        case list():
            return [rendered(part, data) for part in value]
        case str():
            whole = TEMPLATE.fullmatch(value)
            if whole and whole[1] in ("counter", "user", "random"):
                return int(_filled(whole, data))
            return TEMPLATE.sub(lambda match: _filled(match, data), value)
        case _:
            return value


def _filled(match: re.Match[str], data: Mapping[str, list[str]]) -> str:
    kind, low, choice = match.groups()
    match kind:
        case "uuid":
            return str(uuid.UUID(int=0))
        case "random":
            return low or "0"
        case "choice":
            return data.get(choice, [""])[0]
        case _:
            return "0"


def _operation(
    name: str,
    weight: float,
    tools: Mapping[str, dict[str, Any]],
    arguments: Mapping[str, dict[str, Any]],
    how: str,
) -> Operation:
    if name not in tools:
        if name == LISTING:
            return Operation(name=name, kind="list", weight=weight)
        if name == PING:
            return Operation(name=name, kind="ping", weight=weight)
        raise UnknownName("tool", name, tools)
    given = arguments.get(name)
    if given is None:
        given = tool_schema.arguments(tools[name])
        tool_schema.require(tools[name], given, how.replace("TOOL", name))
    return Operation(name=name, kind="call", tool=name, arguments=given, weight=weight)


def _only(tools: Mapping[str, dict[str, Any]], arguments: Mapping[str, dict[str, Any]]) -> str:
    """The tool to call where the user named none."""
    if len(arguments) == 1:
        return next(iter(arguments))
    if tool_schema.ECHO in tools and tool_schema.is_callable(tools[tool_schema.ECHO]):
        return tool_schema.ECHO
    free = tool_schema.easiest(tools.values())
    if len(free) == 1 or (free and tool_schema.is_read_only(free[0])):
        return str(free[0]["name"])
    if not tools:
        raise Unreachable("the server has no tools: load needs one to call, or --mix ping=1")
    names = ", ".join(list(tools)[:NAMED]) + (f" and {len(tools) - NAMED} more" if len(tools) > NAMED else "")
    raise UsageProblem(f"which tool is to be called? The server has {names}; give --tool {next(iter(tools))}")


def _harmless(tools: Mapping[str, dict[str, Any]], arguments: Mapping[str, dict[str, Any]], name: str) -> str:
    """A tool that the server marks read-only, the least demanding one; or the one that the user gave arguments for."""
    if len(arguments) == 1:
        return next(iter(arguments))
    marked = [one for one, tool in tools.items() if tool_schema.is_read_only(tool)]
    if not marked:
        raise UsageProblem(f"none of {name}'s tools is marked read-only: name one that may be called with --tool")
    return min(marked, key=lambda one: len(tool_schema.missing(tools[one], tool_schema.arguments(tools[one]))))


def _call(client: _core.Client, operation: Operation, data: Mapping[str, list[str]], target: str) -> None:
    assert operation.tool is not None, "a call has a tool"
    arguments = rendered(operation.arguments or {}, data)
    result = client.call_tool(operation.tool, arguments)
    if result.get("isError"):
        raise Unreachable(
            f"{target}: the tool {operation.tool} answers {json.dumps(arguments)[:200]} with an error, so there is "
            f"nothing to measure: {said_by_tool(result)}"
        )
