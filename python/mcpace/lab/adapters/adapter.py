"""An adapter as data: how one SDK is installed, and how its programs are started.

Nothing is read, installed or run here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

if TYPE_CHECKING:  # environments are built from adapters
    from mcpace.lab.environments.environment import Environment

SOURCES = "source"
"""The folder of what all versions of a built kind's server have in common."""
VERSIONS = "versions"
"""The folder that has a folder for each version of a built kind: its lock, and whatever else differs."""


class InstallKind(Enum):
    """Where releases come from. Each kind has its installer (`lab/installers`)."""

    PYPI = "pypi"
    CARGO = "cargo"
    GO = "go"
    NPM = "npm"
    MAVEN = "maven"
    OWN = "own"
    """Ours: there is one version, the one that runs."""

    @property
    def built(self) -> bool:
        """Whether programs are built out of the adapter's sources.

        Of servers there are only the versions whose locks lie in the adapter. Clients are of any release.
        """
        return self not in (InstallKind.PYPI, InstallKind.OWN)


class Role(Enum):
    """What an adapter's program is. The word is what users read."""

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
    """`pypi`: requirements that stand in for what the packages ask for."""
    manifest: str | None
    """`own`: what Cargo builds, from a checkout; none where this interpreter runs the program."""
    as_of_release: bool
    """Whether dependencies are resolved as of the release's own upload."""
    margin_hours: float
    python: SpecifierSet
    check: tuple[str, ...]
    """A command that must succeed before an environment counts as ready; empty for none."""


@dataclass(frozen=True)
class ClientReleases:
    """What a range of releases is built of."""

    versions: SpecifierSet
    package: str
    sources: tuple[str, ...]
    """Folders of the adapter, of which later ones win."""

    def covers(self, number: Version) -> bool:
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
    """`pypi`: what only the server program needs. It has its own environment: clients' stay as they were."""


@dataclass(frozen=True)
class Speaks:
    """What the client of a range of versions can do."""

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
        """How to start the client program in an environment."""
        assert self.client is not None, "parse_subject() looked"
        return fill_in(self.client.command, {**environment.places, "adapter": str(self.folder)})

    def server_command(self, environment: Environment) -> tuple[str, ...]:
        """How to start the server program in an environment, up to the options that every server program takes."""
        assert self.server is not None, "parse_subject() looked"
        return fill_in(self.server.command, {**environment.places, "adapter": str(self.folder)})

    def client_releases(self, number: Version) -> ClientReleases | None:
        """What the client of a release is built of; nothing where there is no client for it."""
        assert self.client is not None, "parse_subject() looked"
        return next((entry for entry in self.client.releases if entry.covers(number)), None)

    def covers(self, number: Version) -> bool:
        """Whether there is a client for a release. One that builds nothing says so itself."""
        assert self.client is not None, "parse_subject() looked"
        return not self.client.releases or self.client_releases(number) is not None

    def client_packages(self, number: Version | None = None) -> list[str]:
        """What the client's releases are called in their registry; of one release, where it could be."""
        assert self.client is not None, "parse_subject() looked"
        entry = None if number is None else self.client_releases(number)
        if entry is not None:
            return [entry.package]
        return list(dict.fromkeys(entry.package for entry in self.client.releases)) or [self.install.package]

    def has(self, role: Role) -> bool:
        return (self.client if role is Role.CLIENT else self.server) is not None

    def modes(self, role: Role = Role.CLIENT) -> list[str]:
        """The modes that any version has."""
        if role is Role.SERVER:
            return list(self.server.modes) if self.server is not None else []
        return sorted({mode for range_ in self.speaks for mode in range_.modes})


def fill_in(command: tuple[str, ...], places: dict[str, str]) -> tuple[str, ...]:
    """Puts places into a command of adapter.toml. Not `format`: other braces are the command's own."""
    filled = []
    for word in command:
        for name, place in places.items():
            word = word.replace("{" + name + "}", place)
        filled.append(word)
    return tuple(filled)
