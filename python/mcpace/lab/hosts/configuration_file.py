"""A host's configuration file that is changed in place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.files import read_text
from mcpace.lab.hosts.server_entries import ServerEntry, parse_entries
from mcpace.lab.server_configuration import MOST_BYTES
from mcpace.system.files import is_own, replace_content


@dataclass(frozen=True)
class ConfigurationFile:
    """The text of a configuration, and where it is."""

    path: Path
    """As the user named it."""
    place: Path
    """Without links, so that two names of one file mean one configuration."""
    text: str
    is_toml: bool
    """Whether it is TOML, and JSON with comments otherwise."""
    entries: list[ServerEntry]

    def check_unchanged(self) -> None:
        """Raises :class:`LabError` where the file has changed since it was read: hosts write their own
        configurations."""
        try:
            now = self.place.read_bytes()
        except OSError as error:
            raise LabError(f"cannot read {self.path} again: {error.strerror}") from error
        if now != self.text.encode():
            raise LabError(f"{self.path} was changed meanwhile, probably by its host, and is left as it is: try again")

    def save(self, text: str) -> None:
        """Replaces the text of the file. Raises :class:`LabError` where it was changed meanwhile or can't be
        written."""
        self.check_unchanged()
        try:
            replace_content(self.place, text.encode())
        except OSError as error:
            raise LabError(f"cannot write {self.path}: {error.strerror}") from error


def read_editable_configuration(path: Path) -> ConfigurationFile:
    """Reads a configuration that shall be changed.

    Raises :class:`UsageProblem` where it can't be read, names no server, or belongs to another user.
    """
    text = read_text(path, "the configuration", MOST_BYTES)
    place = path.resolve()
    if not is_own(place.stat(), 0):
        raise UsageProblem(f"cannot change {path}: it belongs to another user")
    is_toml = path.suffix == ".toml"
    try:
        entries = parse_entries(text, is_toml)
    except UsageProblem as problem:
        raise UsageProblem(f"{path} {problem}") from problem
    if not entries:
        raise UsageProblem(f"{path} has no servers: mcpServers, servers or mcp_servers, with a command or a URL each")
    return ConfigurationFile(path, place, text, is_toml, entries)
