"""Finds the entries of servers in a host's configuration, with the places of their values in the text.

Reads the formats of Claude Code (``.mcp.json``, and ``~/.claude.json`` with its projects), Claude Desktop, Cursor,
Windsurf, Gemini CLI, opencode and Zed, ``mcp.json`` and the settings of VS Code, and ``config.toml`` of Codex.

Design constraint: values are found and never changed or resolved here. The text is a host's, so that its size is
limited. :mod:`mcpace.lab.server_configuration` reads the values of one entry; an editor needs their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcpace import _core
from mcpace.lab.errors import UsageProblem

TABLES = ("mcpServers", "mcp_servers", "context_servers", "mcp.servers", "amp.mcpServers")
"""Names of the tables of servers, wherever they stand outside an entry."""
OUTER_TABLES = ("servers", "mcp")
"""Names of tables of servers at the top, or within ``mcp``. Elsewhere they may mean something else."""
URLS = ("url", "httpUrl", "serverUrl")
"""Members that give a server's URL. Gemini CLI has ``httpUrl``, Windsurf ``serverUrl``."""
MOST_DEPTH = 4


@dataclass(frozen=True)
class ServerEntry:
    """One server's entry: its path of names in the configuration, the last of which is the server's, and its table."""

    path: tuple[str, ...]
    node: _core.ConfigNode

    @property
    def name(self) -> str:
        """The server's name."""
        return self.path[-1]

    def member(self, name: str) -> _core.ConfigMember | None:
        """The member of this name; ``None`` where there is none.

        Raises :class:`UsageProblem` where there are several: parsers differ in which of them they take.
        """
        found = [member for member in self.node.members or [] if member.name == name]
        if len(found) > 1:
            raise UsageProblem(f"server {self.name!r} has {name} twice")
        return found[0] if found else None

    def words(self) -> list[_core.ConfigNode] | None:
        """The words of its command line, as far as they are strings; ``None`` for a server without a command."""
        command, arguments = self.member("command"), self.member("args")
        if command is None:
            return None
        words = [command.node] if command.node.items is None else command.node.items
        return [*words, *((arguments.node.items if arguments else None) or [])]

    def url(self) -> _core.ConfigMember | None:
        """The member with its URL; ``None`` for a server without one."""
        return next((member for name in URLS if (member := self.member(name)) is not None), None)


def parse_entries(text: str, toml: bool) -> list[ServerEntry]:
    """The entries of all servers of a configuration, in the order of the text.

    Raises :class:`UsageProblem` where the text is neither JSON with comments nor TOML.
    """
    try:
        root = _core.parse_config(text, toml=toml)
    except _core.UsageProblem as problem:
        raise UsageProblem(f"is not {'TOML' if toml else 'JSON'}: {problem}") from problem
    return list(_entries(root, ()))


def _entries(node: _core.ConfigNode, path: tuple[str, ...]) -> Iterator[ServerEntry]:
    for member in node.members or []:
        inner = (*path, member.name)
        if member.name in TABLES or (member.name in OUTER_TABLES and path in ((), ("mcp",))):
            for server in member.node.members or []:
                if _is_entry(server.node):
                    yield ServerEntry((*inner, server.name), server.node)
        if len(path) < MOST_DEPTH and not _is_entry(member.node):
            yield from _entries(member.node, inner)


def _is_entry(node: _core.ConfigNode) -> bool:
    """Whether a table is a server's: it has a command or a URL, which is no table of further servers."""
    members = node.members or []
    return any(member.name in ("command", *URLS) and member.node.members is None for member in members)
