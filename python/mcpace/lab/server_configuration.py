"""A host's configuration file: the servers that it names, with their variables resolved.

Reads ``mcp.json`` as Claude, Cursor and VS Code write it: ``mcpServers`` or ``servers``, with comments and trailing
commas. A variable is ``${NAME}``, ``${NAME:-default}`` or ``${env:NAME}``, besides ``${userHome}`` and
``${workspaceFolder}``. A variable that is not set is an error: a server would take its text for the value.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode, read_text
from mcpace.lab.headers import checked_header

VARIABLE = re.compile(r"\$\{([^{}]*)\}")
MOST_BYTES = 4 * 1024 * 1024
"""Bytes of a configuration file. A file of real servers has a few kilobytes."""
MOST_COMMENTED = 64 * 1024
"""Characters of a configuration with comments or trailing commas, whose parser takes a second for ten thousand."""


@dataclass(frozen=True)
class ConfiguredServer:
    """One server of a configuration file: a URL with headers, or a command with its environment."""

    url: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def read_server(name: str, config: Path) -> ConfiguredServer:
    """The server ``name`` of the file ``config``.

    Raises :class:`UsageProblem` where the file can't be read, has no such server, or the server's entry is not usable.
    """
    servers = read_entries(config)
    if name not in servers:
        near = difflib.get_close_matches(name, servers, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" It has: {', '.join(sorted(servers)) or 'none'}."
        raise UsageProblem(f"{config} has no server {name!r}.{hint}")
    return parse_entry(name, config, servers[name])


def parse_entry(name: str, config: Path, members: Any) -> ConfiguredServer:
    """The server of one entry of :func:`read_entries`.

    Raises :class:`UsageProblem` where the entry is not usable.
    """
    entry = _Entry(name, config, members)
    if entry.has_member("url"):
        headers = entry.string_pairs("headers")
        return ConfiguredServer(
            url=entry.string_value("url"),
            headers=tuple(checked_header(header, value, f"{config}: server {name!r}") for header, value in headers),
        )
    if entry.has_member("command"):
        command = (entry.string_value("command"), *entry.string_list("args"))
        return ConfiguredServer(command=command, environment=entry.string_pairs("env"))
    raise UsageProblem(f"{config}: server {name!r} has neither url nor command")


def read_entries(config: Path) -> dict[str, Any]:
    """The entries of a file's servers by name, with unresolved variables.

    Raises :class:`UsageProblem` where the file can't be read or has no servers.
    """
    text = read_text(config, "the configuration", MOST_BYTES)
    try:
        document = _parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{config} is not JSON: {error}") from error
    for key in ("mcpServers", "servers"):
        if isinstance(document, dict) and isinstance(document.get(key), dict):
            return dict(document[key])
    raise UsageProblem(f'{config} has no object "mcpServers" or "servers"')


class _Entry:
    """The members of one server's entry, each with its variables resolved."""

    def __init__(self, name: str, config: Path, members: Any) -> None:
        self._name = name
        self._config = config
        if not isinstance(members, dict):
            raise self._member_problem("", f"must be an object, not {_type_name(members)}")
        self._members: dict[str, Any] = members

    def has_member(self, member: str) -> bool:
        return self._members.get(member) is not None

    def string_value(self, member: str) -> str:
        return self._expand_variables(member, self._members[member])

    def string_list(self, member: str) -> tuple[str, ...]:
        values = self._members.get(member) or []
        if not isinstance(values, list):
            raise self._member_problem(member, f"must be an array, not {_type_name(values)}")
        return tuple(self._expand_variables(f"{member}[{index}]", value) for index, value in enumerate(values))

    def string_pairs(self, member: str) -> tuple[tuple[str, str], ...]:
        values = self._members.get(member) or {}
        if not isinstance(values, dict):
            raise self._member_problem(member, f"must be an object, not {_type_name(values)}")
        if not all(is_unicode(key) for key in values):
            raise self._member_problem(member, "has a name that is not UTF-8 text")
        return tuple((key, self._expand_variables(f"{member}.{key}", value)) for key, value in values.items())

    def _expand_variables(self, member: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._member_problem(member, f"must be a string, not {_type_name(value)}")
        resolved = VARIABLE.sub(lambda match: self._variable_value(member, match[1]), str(value))
        if not is_unicode(resolved):
            raise self._member_problem(member, "is not UTF-8 text")
        return resolved

    def _variable_value(self, member: str, expression: str) -> str:
        if expression == "userHome":
            return str(Path.home())
        if expression == "workspaceFolder":
            folder = self._config.resolve().parent
            return str(folder.parent if folder.name in (".vscode", ".cursor") else folder)
        name, has_default, default = expression.removeprefix("env:").partition(":-")
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
            raise self._member_problem(member, f"has ${{{expression}}}, which mcpace can't resolve: use ${{NAME}}")
        value = os.environ.get(name) or (default if has_default else None)
        if value is None:
            raise self._member_problem(member, f"needs the environment variable {name}, which is not set")
        return value

    def _member_problem(self, member: str, what: str) -> UsageProblem:
        place = f"{self._config}: server {self._name!r}"
        return UsageProblem(f"{place}: {member} {what}" if member else f"{place} {what}")


def _parse_json(text: str) -> Any:
    """Parses JSON, or JSON with comments and trailing commas. Errors are those of the second parser."""
    text = text.removeprefix("\ufeff")
    try:
        return json.loads(text)
    except ValueError as error:
        if len(text) > MOST_COMMENTED:
            raise ValueError(f"{error}; comments are read in files of {MOST_COMMENTED:,} characters at most") from error
        try:
            import json5  # slow, so only where it is needed
        except ModuleNotFoundError:
            raise UsageProblem("JSON with comments can be read with: pip install 'mcpace[lab]'") from None
        return json5.loads(text)


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
