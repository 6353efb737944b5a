"""Data types of an adapter: how one SDK is installed, and how its programs are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

if TYPE_CHECKING:  # environments are built from adapters
    from mcpace.lab.environments.environment import Environment

SOURCES = "source"
"""Folder with the source files that all versions of a built server share."""
VERSIONS = "versions"
"""Folder with one subfolder for each version of a built server: its lock file, and the files that differ."""


class InstallKind(Enum):
    """Source of releases. Each kind has its installer (`lab/environments/installers`)."""

    PYPI = "pypi"
    CARGO = "cargo"
    GO = "go"
    NPM = "npm"
    MAVEN = "maven"
    OWN = "own"
    """mcpace itself: the only version is the running one."""

    @property
    def is_built(self) -> bool:
        """Whether programs are built from the adapter's sources.

        A server exists only for the versions with a lock file in the adapter. A client can be built for any release.
        """
        return self not in (InstallKind.PYPI, InstallKind.OWN)


class Role(Enum):
    """Role of an adapter's program. Messages show the value."""

    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True)
class Install:
    kind: InstallKind
    package: str
    extras: tuple[str, ...]
    also: tuple[str, ...]
    """Further requirements, installed beside the package."""
    overrides: tuple[str, ...]
    """`pypi`: requirements that override those of the packages."""
    manifest: str | None
    """`own`: the manifest that Cargo builds, from a checkout; none where this interpreter runs the program."""
    as_of_release: bool
    """Whether dependencies are resolved as of the release's own upload."""
    margin_hours: float
    python: SpecifierSet
    check: tuple[str, ...]
    """A command that must succeed before an environment counts as ready; empty for none."""


@dataclass(frozen=True)
class ClientReleases:
    """Package and source folders that a client is built from, for a range of releases."""

    versions: SpecifierSet
    package: str
    sources: tuple[str, ...]
    """Folders of the adapter. Files of later folders replace those of earlier ones."""

    def covers_version(self, number: Version) -> bool:
        return self.versions.contains(number, prereleases=True)


@dataclass(frozen=True)
class ClientCommand:
    command: tuple[str, ...]
    """With places like `{python}` still to be filled in."""
    transports: tuple[str, ...]
    releases: tuple[ClientReleases, ...]
    """Empty where no release needs anything built: `pypi`."""


@dataclass(frozen=True)
class ServerCommand:
    command: tuple[str, ...]
    """With places like `{python}` still to be filled in."""
    transports: tuple[str, ...]
    modes: tuple[str, ...]
    """The first is what a subject without a mode means."""
    also: tuple[str, ...]
    """`pypi`: requirements of the server program only. They go into its own environment, not into that of clients."""
    also_for: Mapping[str, tuple[str, ...]]
    """Further requirements by workload. A server has an environment of its own for a workload that is named here."""


@dataclass(frozen=True)
class Speaks:
    """Features of the client for a range of versions."""

    versions: SpecifierSet
    revisions: tuple[str, ...]
    modes: tuple[str, ...]
    auth: tuple[str, ...]


@dataclass(frozen=True)
class Adapter:
    name: str
    title: str
    folder: Path
    install: Install
    client: ClientCommand | None
    server: ServerCommand | None
    speaks: tuple[Speaks, ...]

    def client_command(self, environment: Environment) -> tuple[str, ...]:
        """Command that starts the client program in an environment."""
        assert self.client is not None, "parse_subject() looked"
        return fill_in(self.client.command, {**environment.places, "adapter": str(self.folder)})

    def server_command(self, environment: Environment) -> tuple[str, ...]:
        """Command that starts the server program in an environment, without the options of every server program."""
        assert self.server is not None, "parse_subject() looked"
        return fill_in(self.server.command, {**environment.places, "adapter": str(self.folder)})

    def client_releases(self, number: Version) -> ClientReleases | None:
        """Package and sources that the client of a release is built from; ``None`` where it has no client."""
        assert self.client is not None, "parse_subject() looked"
        return next((entry for entry in self.client.releases if entry.covers_version(number)), None)

    def covers_version(self, number: Version) -> bool:
        """Whether there is a client for a release. A client that isn't built reports unsupported releases itself."""
        assert self.client is not None, "parse_subject() looked"
        return not self.client.releases or self.client_releases(number) is not None

    def client_packages(self, number: Version | None = None) -> list[str]:
        """Registry names of the client's package: all of them, or the one that has the release ``number``."""
        assert self.client is not None, "parse_subject() looked"
        entry = None if number is None else self.client_releases(number)
        if entry is not None:
            return [entry.package]
        return list(dict.fromkeys(entry.package for entry in self.client.releases)) or [self.install.package]

    def has_role(self, role: Role) -> bool:
        return (self.client if role is Role.CLIENT else self.server) is not None

    def supported_modes(self, role: Role = Role.CLIENT) -> list[str]:
        """Modes that at least one version supports."""
        if role is Role.SERVER:
            return list(self.server.modes) if self.server is not None else []
        return sorted({mode for range_ in self.speaks for mode in range_.modes})


def fill_in(command: tuple[str, ...], places: dict[str, str]) -> tuple[str, ...]:
    """Fills placeholders like `{python}` into a command of adapter.toml. Leaves all other braces as they are."""
    filled = []
    for word in command:
        for name, place in places.items():
            word = word.replace("{" + name + "}", place)
        filled.append(word)
    return tuple(filled)
