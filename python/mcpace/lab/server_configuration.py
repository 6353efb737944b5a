"""A host's configuration file: the servers that it names, with their variables resolved as the host resolves them.

Reads the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex (TOML) and Gemini CLI, and plain ``mcp.json``,
with comments and trailing commas. A variable is ``${NAME}``, ``${NAME:-default}`` or ``${env:NAME}``, besides
``${userHome}``, ``${workspaceFolder}`` and ``${input:ID}``; Gemini CLI reads ``$NAME``, too. Claude Desktop and Codex
replace no variables. A variable that is not set is an error: a server would take its text for the value.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode, read_text
from mcpace.lab.headers import checked_header
from mcpace.lab.host_files import CLAUDE_CODE, CODEX, GEMINI, Host, host_of, project_folder
from mcpace.lab.hosts.flight_wrap import own_command
from mcpace.lab.hosts.server_entries import URLS

VARIABLE = re.compile(r"\$\{([^{}]*)\}")
BARE_VARIABLE = re.compile(r"\$\{([^{}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ENVIRONMENT_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
INPUT_PREFIX = "MCPACE_INPUT_"
"""Beginning of the environment variables that give the inputs for which VS Code asks a person."""
TOOL_LISTS = {CODEX: ("enabled_tools", "disabled_tools"), GEMINI: ("includeTools", "excludeTools")}
"""For each host: the members of a server's entry that name the only tools that the host takes, and those that it leaves
out."""
MOST_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a configuration file. Claude Code keeps its servers beside a history of megabytes."""


class NoServers(UsageProblem):
    """A configuration can be read, and has no place for servers."""


@dataclass(frozen=True)
class ConfiguredServer:
    """One server of a configuration file: a URL with headers, or a command with its environment.

    A server behind the flight recorder has its own command, without the recorder.
    """

    url: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    folder: Path | None = None
    """Folder in which the command runs; ``None`` for the folder of the host."""


@dataclass(frozen=True)
class Configuration:
    """The servers of one file, by name, with unresolved variables."""

    path: Path
    host: Host
    entries: dict[str, Any]
    inputs: dict[str, Any] = field(default_factory=dict)
    """Definitions of VS Code's inputs by id."""
    switched_off: frozenset[str] = frozenset()
    """Names of the servers that the host doesn't start."""

    def server(self, name: str) -> ConfiguredServer:
        """The server ``name``.

        Raises :class:`UsageProblem` where there is none, or its entry is not usable.
        """
        if name not in self.entries:
            near = difflib.get_close_matches(name, self.entries, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" It has: {', '.join(sorted(self.entries)) or 'none'}."
            raise UsageProblem(f"{self.path} has no server {name!r}.{hint}")
        return _Entry(name, self).server()

    def tool_filter(self, name: str) -> tuple[frozenset[str] | None, frozenset[str]]:
        """The only tools of the server ``name`` that the host takes, ``None`` for all; and those that it leaves out."""
        only, left_out = TOOL_LISTS.get(self.host, ("", ""))
        entry = _object(self.entries.get(name))
        named = entry.get(only)
        return _tool_names(named) if isinstance(named, list) else None, _tool_names(entry.get(left_out))


def read_configuration(path: Path) -> Configuration:
    """Reads the configuration file ``path``.

    Raises :class:`UsageProblem` where the file can't be read, and :class:`NoServers` where it has no servers.
    """
    host = host_of(path)
    text = read_text(path, "the configuration", MOST_BYTES)
    document = _parse_toml(path, text) if path.suffix == ".toml" else _parse_json(path, text)
    document = _object(document)
    found = [servers for servers in _server_tables(document, host) if isinstance(servers, dict)]
    if not found:
        expected = "table [mcp_servers.NAME]" if path.suffix == ".toml" else 'object "mcpServers" or "servers"'
        raise NoServers(f"{path} has no {expected}")
    entries = {name: members for servers in found for name, members in servers.items()}
    inputs = document.get("inputs")
    return Configuration(
        path,
        host,
        entries,
        {str(one.get("id")): one for one in inputs if isinstance(one, dict)} if isinstance(inputs, list) else {},
        frozenset(name for name, members in entries.items() if _is_switched_off(name, members, document, host)),
    )


def _server_tables(document: dict[str, Any], host: Host) -> list[Any]:
    """The objects with servers. A later object overrides the servers of an earlier one."""
    if host is CODEX:
        return [document.get("mcp_servers")]
    tables = [next((document[key] for key in ("mcpServers", "servers") if isinstance(document.get(key), dict)), None)]
    if host is CLAUDE_CODE:
        tables.append(_object(_object(document.get("projects")).get(str(Path.cwd()))).get("mcpServers"))
    elif tables == [None]:  # settings.json of VS Code
        tables = [_object(document.get("mcp")).get("servers")]
    return tables


def _is_switched_off(name: str, members: Any, document: dict[str, Any], host: Host) -> bool:
    entry = _object(members)
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return True
    if host is GEMINI:
        rules = _object(document.get("mcp"))
        allowed, excluded = rules.get("allowed"), rules.get("excluded")
        return (isinstance(allowed, list) and name not in allowed) or (isinstance(excluded, list) and name in excluded)
    if host is CLAUDE_CODE:
        off = _object(_object(document.get("projects")).get(str(Path.cwd()))).get("disabledMcpServers")
        return isinstance(off, list) and name in off
    return False


class _Entry:
    """The members of one server's entry, each with its variables resolved."""

    def __init__(self, name: str, configuration: Configuration) -> None:
        self._name = name
        self._configuration = configuration
        self._config = configuration.path
        members = configuration.entries[name]
        if not isinstance(members, dict):
            raise self._member_problem("", f"must be an object, not {_type_name(members)}")
        self._members: dict[str, Any] = members

    def server(self) -> ConfiguredServer:
        """The server of the entry. Raises :class:`UsageProblem` where the entry is not usable."""
        url = next((member for member in URLS if self._has_member(member)), None)
        if url is not None:
            return ConfiguredServer(url=self._string_value(url), headers=tuple(self._headers()))
        if self._has_member("command"):
            command = (self._string_value("command"), *self._string_list("args"))
            return ConfiguredServer(
                command=own_command(command), environment=self._environment(), folder=self._folder()
            )
        raise UsageProblem(f"{self._config}: server {self._name!r} has neither url nor command")

    def _headers(self) -> list[tuple[str, str]]:
        pairs = [*self._string_pairs("headers"), *self._string_pairs("http_headers")]
        for header, variable in self._string_pairs("env_http_headers"):
            pairs.append((header, self._environment_value(f"env_http_headers.{header}", variable)))
        if self._has_member("bearer_token_env_var"):
            token = self._environment_value("bearer_token_env_var", self._string_value("bearer_token_env_var"))
            pairs.append(("Authorization", f"Bearer {token}"))
        return [checked_header(header, value, f"{self._config}: server {self._name!r}") for header, value in pairs]

    def _environment(self) -> tuple[tuple[str, str], ...]:
        values = dict(self._file_pairs("envFile")) | dict(self._string_pairs("env"))
        return tuple(values.items())

    def _folder(self) -> Path | None:
        if not self._has_member("cwd"):
            return None
        folder = self._path("cwd")
        if not folder.is_dir():
            raise self._member_problem("cwd", f"is {self._members['cwd']}, which is no folder")
        return folder

    def _path(self, member: str) -> Path:
        """The path of a member, from the folder of the project on."""
        try:
            return project_folder(self._config) / Path(self._string_value(member)).expanduser()
        except RuntimeError as error:
            raise self._member_problem(member, "names the home of a user that does not exist") from error

    def _file_pairs(self, member: str) -> list[tuple[str, str]]:
        """Variables of a file with lines ``NAME=value``."""
        if not self._has_member(member):
            return []
        try:
            text = read_text(self._path(member), member, MOST_BYTES)
        except UsageProblem as problem:
            # The path may hold the value of a variable, which is a secret.
            raise self._member_problem(member, f"is {self._members[member]}, which cannot be read") from problem
        pairs = []
        for line in text.splitlines():
            if (match := ENVIRONMENT_LINE.fullmatch(line)) is not None:
                value = match[2]
                is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
                pairs.append((match[1], value[1:-1] if is_quoted else value.partition(" #")[0].rstrip()))
        return pairs

    def _has_member(self, member: str) -> bool:
        return self._members.get(member) is not None

    def _string_value(self, member: str) -> str:
        return self._expand_variables(member, self._members[member])

    def _string_list(self, member: str) -> tuple[str, ...]:
        values = self._members.get(member) or []
        if not isinstance(values, list):
            raise self._member_problem(member, f"must be an array, not {_type_name(values)}")
        return tuple(self._expand_variables(f"{member}[{index}]", value) for index, value in enumerate(values))

    def _string_pairs(self, member: str) -> tuple[tuple[str, str], ...]:
        values = self._members.get(member) or {}
        if not isinstance(values, dict):
            raise self._member_problem(member, f"must be an object, not {_type_name(values)}")
        if not all(is_unicode(key) for key in values):
            raise self._member_problem(member, "has a name that is not UTF-8 text")
        return tuple((key, self._expand_variables(f"{member}.{key}", value)) for key, value in values.items())

    def _expand_variables(self, member: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._member_problem(member, f"must be a string, not {_type_name(value)}")
        host, resolved = self._configuration.host, str(value)
        if host.expands_bare_variables:
            resolved = BARE_VARIABLE.sub(lambda match: self._variable_value(member, match[1] or match[2]), resolved)
        elif host.expands_variables:
            resolved = VARIABLE.sub(lambda match: self._variable_value(member, match[1]), resolved)
        if not is_unicode(resolved):
            raise self._member_problem(member, "is not UTF-8 text")
        return resolved

    def _variable_value(self, member: str, expression: str) -> str:
        folder = project_folder(self._config)
        known = {
            "userHome": str(Path.home()),
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "cwd": str(folder),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if expression in known:
            return known[expression]
        if expression.startswith("input:"):
            return self._input_value(member, expression.removeprefix("input:"))
        name, has_default, default = expression.removeprefix("env:").partition(":-")
        if VARIABLE_NAME.fullmatch(name) is None:
            raise self._member_problem(member, f"has ${{{expression}}}, which mcpace can't resolve: use ${{NAME}}")
        return os.environ.get(name) or default if has_default else self._environment_value(member, name)

    def _input_value(self, member: str, identifier: str) -> str:
        """An input for which VS Code asks a person: an environment variable, else the default of its definition."""
        variable = INPUT_PREFIX + re.sub(r"\W", "_", identifier, flags=re.ASCII).upper()
        default = _object(self._configuration.inputs.get(identifier)).get("default")
        value = os.environ.get(variable) or (default if isinstance(default, str) else None)
        if value is None:
            raise self._member_problem(
                member,
                f"needs the input {identifier}, for which the host asks: set the environment variable {variable}",
            )
        return value

    def _environment_value(self, member: str, name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise self._member_problem(member, f"needs the environment variable {name}, which is not set")
        return value

    def _member_problem(self, member: str, what: str) -> UsageProblem:
        place = f"{self._config}: server {self._name!r}"
        return UsageProblem(f"{place}: {member} {what}" if member else f"{place} {what}")


def _parse_toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageProblem(f"{path} is not TOML: {error}") from error


def _parse_json(path: Path, text: str) -> Any:
    """Parses JSON, or JSON with comments and trailing commas. Errors are those of the second parser.

    Python's parser is the faster one for the history of Claude Code, and takes text that is no UTF-8 in it.
    """
    text = text.removeprefix("\ufeff")
    try:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return _value_of(_core.parse_config(text), text.encode())
    except (_core.UsageProblem, ValueError, RecursionError) as error:
        raise UsageProblem(f"{path} is not JSON: {error}") from error


def _value_of(node: _core.ConfigNode, text: bytes) -> Any:
    """The value of a place in a text of JSON."""
    if node.members is not None:
        return {member.name: _value_of(member.node, text) for member in node.members}
    if node.items is not None:
        return [_value_of(item, text) for item in node.items]
    return node.text if node.text is not None else json.loads(text[node.start : node.end])


def _tool_names(value: Any) -> frozenset[str]:
    """Names of tools; Gemini CLI also takes ``name(…)``."""
    names = value if isinstance(value, list) else []
    return frozenset(name.partition("(")[0] for name in names if isinstance(name, str))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
