"""The servers of all configurations that are checked, each with its place and the reason why it can't be started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.host_files import project_configurations, user_configurations
from mcpace.lab.server_configuration import Configuration, NoServers, read_configuration
from mcpace.lab.targets import Target, configured_target


@dataclass(frozen=True)
class CheckedServer:
    """One server of a configuration."""

    label: str
    """The server's name; with the host's name in front where several configurations have a server of this name."""
    configuration: Path
    host: str
    name: str
    """The server's name in the configuration."""
    target: Target | None
    """``None`` where the configuration can't be resolved."""
    problem: str = ""
    only_tools: frozenset[str] | None = None
    """The only tools that the host takes; ``None`` for all."""
    left_out_tools: frozenset[str] = frozenset()

    def takes_tool(self, name: str) -> bool:
        """Whether the host gives this tool of the server to the model."""
        return name not in self.left_out_tools and (self.only_tools is None or name in self.only_tools)


@dataclass(frozen=True)
class CheckedServers:
    """All servers, in the order of their configurations."""

    servers: tuple[CheckedServer, ...]
    switched_off: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons why a configuration that was found, and not given, can't be read."""


def read_servers(paths: Sequence[Path]) -> CheckedServers:
    """The servers of the configurations ``paths``; of the user's own where none is given. A configuration in the
    current folder is read only where it is given, since its commands may be a stranger's.

    Raises :class:`UsageProblem` where a given file can't be read, where no file is found, and where none has a server.
    """
    found = list(paths) or user_configurations()
    if not found:
        own = project_configurations(Path.cwd())
        example = own[0].relative_to(Path.cwd()) if own else "~/.cursor/mcp.json"
        raise UsageProblem(
            "found no configuration of yours for Claude Code, Claude Desktop, Cursor, VS Code, Codex or Gemini CLI: "
            f"give a file, as in mcpace check {example}"
        )
    configurations: list[Configuration] = []
    problems: list[str] = []
    for path in found:
        try:
            configurations.append(read_configuration(path))
        except UsageProblem as problem:
            if paths:
                raise
            # A file that was found may be the settings of other things.
            problems += [] if isinstance(problem, NoServers) else [str(problem)]
    names = [name for one in configurations for name in one.entries]
    servers: list[CheckedServer] = []
    for configuration in configurations:
        for name in configuration.entries:
            if name not in configuration.switched_off:
                label = name if names.count(name) == 1 else f"{configuration.host.name}: {name}"
                taken = {server.label for server in servers}
                label = label if label not in taken else f"{configuration.path}: {name}"
                servers.append(_checked_server(name, label, configuration))
    off = [name for one in configurations for name in one.entries if name in one.switched_off]
    if not servers:
        places = ", ".join(str(path) for path in found)
        why = f"; switched off: {', '.join(off)}" if off else ""
        raise UsageProblem(f"no server to start is in {places}{why}{''.join(f'; {one}' for one in problems)}")
    return CheckedServers(tuple(servers), tuple(off), tuple(problems))


def _checked_server(name: str, label: str, configuration: Configuration) -> CheckedServer:
    target, problem = None, ""
    try:
        target = configured_target(label, configuration.server(name))
    except UsageProblem as error:
        problem = str(error).removeprefix(f"{configuration.path}: server {name!r}: ")
    only, left_out = configuration.tool_filter(name)
    return CheckedServer(label, configuration.path, configuration.host.name, name, target, problem, only, left_out)
