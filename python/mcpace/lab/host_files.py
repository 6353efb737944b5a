"""The configuration files of MCP hosts: their places, and the rules by which each host reads them.

Design constraint: a file is recognised by its path alone, so that a copy in another folder is read as a plain
``mcp.json``. Nothing is opened here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """One host, and its rules for variables in a configuration."""

    name: str
    expands_variables: bool = True
    """Whether ``${NAME}`` is replaced. Otherwise a server gets the text as it is written."""
    expands_bare_variables: bool = False
    """Whether ``$NAME`` is replaced, too."""


CLAUDE_CODE = Host("Claude Code")
CLAUDE_DESKTOP = Host("Claude Desktop", expands_variables=False)
CURSOR = Host("Cursor")
VS_CODE = Host("VS Code")
CODEX = Host("Codex", expands_variables=False)
GEMINI = Host("Gemini CLI", expands_bare_variables=True)
PLAIN = Host("mcp.json")

PROJECT_FILES = (
    ".mcp.json",
    "mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
)
PROJECT_FOLDERS = (".vscode", ".cursor", ".codex", ".gemini", ".claude")
"""Folders of hosts inside a project, whose parent is the project."""


def host_of(path: Path) -> Host:
    """The host that reads the file ``path``; :data:`PLAIN` where the path is of no known host."""
    folder, name = path.parent.name, path.name
    if path.suffix == ".toml":
        return CODEX
    if name == "claude_desktop_config.json":
        return CLAUDE_DESKTOP
    if name in (".mcp.json", ".claude.json"):
        return CLAUDE_CODE
    if folder == ".cursor":
        return CURSOR
    if folder == ".gemini":
        return GEMINI
    if folder == ".vscode" or path.parts[-3:-1] in (("Code", "User"), ("Code - Insiders", "User")):
        return VS_CODE
    return PLAIN


def project_folder(config: Path) -> Path:
    """The folder that a host takes for the project of ``config``."""
    folder = config.resolve().parent
    return folder.parent if folder.name in PROJECT_FOLDERS else folder


def user_configurations(home: Path | None = None) -> list[Path]:
    """The user's configuration files of all known hosts, as far as they exist."""
    return [path for path in dict.fromkeys(_user_places(home or Path.home())) if path.is_file()]


def project_configurations(project: Path) -> list[Path]:
    """The configuration files of a project that exist. The project may be a stranger's, whose commands a host starts
    only after it has asked.
    """
    return [path for name in PROJECT_FILES if (path := project / name).is_file()]


def _user_places(home: Path) -> Iterator[Path]:
    yield home / ".claude.json"
    yield home / ".cursor" / "mcp.json"
    yield Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    yield home / ".gemini" / "settings.json"
    programs = _program_settings(home)
    yield programs / "Claude" / "claude_desktop_config.json"
    for edition in ("Code", "Code - Insiders"):
        for name in ("mcp.json", "settings.json"):
            yield programs / edition / "User" / name


def _program_settings(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
