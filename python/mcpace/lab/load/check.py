"""Checks a target before the load: a short conversation that connects, lists the tools and makes each call once.

The check selects the operations of the load and makes sure that they can be called. The engine gets its results, such
as the revision and the access token.
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
from mcpace.lab.errors import UnknownName, Unreachable, UsageProblem, tool_error_text
from mcpace.lab.load.plan import Operation
from mcpace.lab.load.settings import LoadSettings

LISTING, PING = "tools/list", "ping"
NAMED = 12
"""Most tools that a message names."""

TEMPLATE = re.compile(r"\{\{\s*(counter|user|uuid|random|choice)\s*(?:\(\s*(-?\d+)[^)]*\)|:\s*([^}\s]+))?\s*\}\}")


@dataclass(frozen=True)
class Checked:
    """Results of the check."""

    revision: str
    operations: list[Operation]
    notes: list[str] = field(default_factory=list)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The server's tool listing, by tool name."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """One result of each called tool, by tool name."""


def check_target(client: _core.Client, settings: LoadSettings, name: str, *, careful: bool = False) -> Checked:
    """Checks the target. ``careful``: a tool that the user didn't name is called only if it is marked read-only.

    Raises :class:`Unreachable` where the target can't be reached or a tool returns an error, and :class:`UsageProblem`
    where no tool can be selected or a named tool doesn't exist.
    """
    try:
        revision = str(client.connect()["revision"])
        if settings.replay:
            return Checked(revision, list(settings.replay))
        tools = {str(tool.get("name")): tool for tool in client.list_tools()}
        if careful and not settings.mix:
            settings = replace(settings, mix=((_read_only_tool(tools, settings.arguments, name), 1.0),))
        if careful:
            settings = _with_example_arguments(tools, settings)
        operations = (
            select_operations(tools, settings, "--tool and --args") if careful else select_operations(tools, settings)
        )
        called = [operation for operation in operations if operation.kind == "call"]
        results = {operation.name: _call_tool(client, operation, settings.data, name) for operation in called}
    except _core.ClientProblem as problem:
        raise Unreachable(f"{name}: {problem}") from problem
    return Checked(revision, operations, tools=tools, results=results)


def select_operations(
    tools: Mapping[str, dict[str, Any]], settings: LoadSettings, how: str = "--args TOOL=JSON"
) -> list[Operation]:
    """Selects the operations of the load. ``how``: the options by which a user names a tool and its arguments.

    Raises :class:`UsageProblem` where the selection is ambiguous.
    """
    mix = settings.mix or ((_default_tool(tools, settings.arguments), 1.0),)
    for tool in settings.arguments:
        if tool not in dict(mix):
            raise UsageProblem(f"--args names {tool!r}, which the load doesn't call: name it with --mix too")
    return [_checked_operation(name, weight, tools, settings.arguments, how) for name, weight in mix]


def render_templates(value: Any, data: Mapping[str, list[str]]) -> Any:
    """Replaces each template in the arguments by a sample value."""
    match value:
        case dict():
            return {name: render_templates(part, data) for name, part in value.items()}
        case list():
            return [render_templates(part, data) for part in value]
        case str():
            whole = TEMPLATE.fullmatch(value)
            if whole and whole[1] in ("counter", "user", "random"):
                return int(_sample_value(whole, data))
            return TEMPLATE.sub(lambda match: _sample_value(match, data), value)
        case _:
            return value


def _sample_value(match: re.Match[str], data: Mapping[str, list[str]]) -> str:
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


def _checked_operation(
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
    values = arguments.get(name)
    if values is None:
        values = tool_schema.fixed_arguments(tools[name])
        tool_schema.require_arguments(tools[name], values, how.replace("TOOL", name))
    return Operation(name=name, kind="call", tool=name, arguments=values, weight=weight)


def _default_tool(tools: Mapping[str, dict[str, Any]], arguments: Mapping[str, dict[str, Any]]) -> str:
    """Selects the tool to call where the user named none."""
    if len(arguments) == 1:
        return next(iter(arguments))
    if tool_schema.ECHO in tools and tool_schema.is_callable(tools[tool_schema.ECHO]):
        return tool_schema.ECHO
    free = tool_schema.easiest_tools(tools.values())
    if len(free) == 1 or (free and tool_schema.is_read_only(free[0])):
        return str(free[0]["name"])
    if not tools:
        raise Unreachable("the server has no tools: load needs one to call, or --mix ping=1")
    names = ", ".join(list(tools)[:NAMED]) + (f" and {len(tools) - NAMED} more" if len(tools) > NAMED else "")
    raise UsageProblem(f"which tool is to be called? The server has {names}; give --tool {next(iter(tools))}")


def _read_only_tool(tools: Mapping[str, dict[str, Any]], arguments: Mapping[str, dict[str, Any]], name: str) -> str:
    """Selects the read-only tool that needs the fewest arguments, or the tool that the user gave arguments for."""
    if len(arguments) == 1:
        return next(iter(arguments))
    marked = [one for one, tool in tools.items() if tool_schema.is_read_only(tool)]
    if not marked:
        raise UsageProblem(f"none of {name}'s tools is marked read-only: name one that may be called with --tool")

    def count_invented(one: str) -> tuple[int, int]:
        tool = tools[one]
        makers = (tool_schema.example_arguments, tool_schema.fixed_arguments)
        missing, invented = (len(tool_schema.missing_arguments(tool, make(tool))) for make in makers)
        return missing, invented

    return min(marked, key=count_invented)


def _with_example_arguments(tools: Mapping[str, dict[str, Any]], settings: LoadSettings) -> LoadSettings:
    """Adds arguments made from the schema for read-only tools whose required arguments the user didn't give."""
    made = {
        name: tool_schema.example_arguments(tools[name])
        for name, _ in settings.mix
        if name in tools and name not in settings.arguments and tool_schema.is_read_only(tools[name])
    }
    complete = {name: own for name, own in made.items() if not tool_schema.missing_arguments(tools[name], own)}
    return replace(settings, arguments={**settings.arguments, **complete})


def _call_tool(
    client: _core.Client, operation: Operation, data: Mapping[str, list[str]], target: str
) -> dict[str, Any]:
    assert operation.tool is not None, "a call has a tool"
    arguments = render_templates(operation.arguments or {}, data)
    result = client.call_tool(operation.tool, arguments)
    if result.get("isError"):
        raise Unreachable(
            f"{target}: the tool {operation.tool} answers {json.dumps(arguments)[:200]} with an error, so there is "
            f"nothing to measure: {tool_error_text(result)}"
        )
    return result
