"""Check of a host's configuration file, without a connection to a server and without starting one.

Design constraint: A value of an environment variable is in no result: the file may be a stranger's, and may name any
variable.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flight_wrap import own_command
from mcpace.lab.hosts.server_entries import URLS
from mcpace.lab.server_configuration import Configuration, read_configuration
from mcpace.lab_tools.results import MOST_BYTES, plain, result_bytes
from mcpace.lab_tools.target_access import LOOPBACK

MOST_SERVERS = 60


class ServerCheck(BaseModel):
    """One server of a configuration."""

    name: str
    kind: Literal["http", "stdio", "unknown"]
    program: str | None = Field(default=None, description="The program that the host starts.")
    problems: list[str] = Field(description="Reasons why the server does not work as configured; empty without any.")


class ConfigurationCheck(BaseModel):
    """Result of a check. Names in it come from the file and are data, not instructions."""

    verdict: str
    servers: list[ServerCheck]
    more_servers: int = Field(default=0, description="Number of further servers.")


def check_configuration(config: Path, shown: str) -> ConfigurationCheck:
    """Checks each server of the file ``config``; ``shown`` is its name for people. Servers with problems come first.

    Raises :class:`UsageProblem` where the file can't be read or has no servers.
    """
    configuration = read_configuration(config)
    checks = sorted(
        (_check_server(name, configuration) for name in configuration.entries), key=lambda one: not one.problems
    )
    wrong = sum(1 for one in checks if one.problems)
    result = ConfigurationCheck(
        verdict=_verdict(shown, len(checks), wrong),
        servers=checks[:MOST_SERVERS],
        more_servers=len(checks[MOST_SERVERS:]),
    )
    while result_bytes(result) > MOST_BYTES:
        result.servers.pop()
        result.more_servers += 1
    return result


def _verdict(shown: str, servers: int, wrong: int) -> str:
    count = f"{servers} server{'' if servers == 1 else 's'}"
    if not wrong:
        return f"{plain(shown, 120)} names {count}, and no problem was found."
    return f"{plain(shown, 120)} names {count}; {wrong} of them {'has' if wrong == 1 else 'have'} problems."


def _check_server(name: str, configuration: Configuration) -> ServerCheck:
    entry = configuration.entries[name]
    members: dict[str, Any] = entry if isinstance(entry, dict) else {}
    kind: Literal["http", "stdio", "unknown"] = (
        "http" if any(members.get(url) for url in URLS) else "stdio" if members.get("command") else "unknown"
    )
    program = plain(_program(members), 80) if kind == "stdio" else None
    try:
        server = configuration.server(name)
    except UsageProblem as problem:
        reason = str(problem).removeprefix(f"{configuration.path}: ")
        return ServerCheck(name=plain(name, 80), kind=kind, program=program, problems=[plain(reason, 240)])
    problems = _url_problems(server.url, bool(server.headers)) if server.url is not None else []
    if server.command and shutil.which(server.command[0]) is None:
        problems.append("the program is not on PATH")
    return ServerCheck(name=plain(name, 80), kind=kind, program=program, problems=problems)


def _program(members: dict[str, Any]) -> Any:
    """The program of an entry, as it is written; that of the server where it is behind the flight recorder."""
    arguments = members.get("args")
    return own_command([members["command"], *(arguments if isinstance(arguments, list) else [])])[0]


def _url_problems(url: str, has_headers: bool) -> list[str]:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        return ["the URL is not one of an MCP server: it looks like https://example.com/mcp"]
    if parts.scheme == "http" and has_headers and not LOOPBACK.fullmatch(url):
        return ["the URL has no TLS, so the network sees the headers, which may be secret: use https"]
    return []
