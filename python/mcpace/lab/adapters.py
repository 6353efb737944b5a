"""Adapters as data: adapter.toml parsed once, and the subjects that users type.

Nothing is installed or run here: `environments` installs, `program` runs, `releases` knows which versions exist.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from mcpace import __version__
from mcpace.lab.errors import AdapterProblem, UnknownName, UsageProblem
from mcpace.lab.releases import Say, Selection, choose, of_client, parse_selection
from mcpace.lab.releases import find as find_release

if TYPE_CHECKING:  # environments are built from adapters
    from mcpace.lab.environments import Environment

FORMAT = 1
ADAPTERS_VARIABLE = "MCPACE_ADAPTERS"
DEFAULT_MARGIN_HOURS = 24.0

SOURCES = "source"
"""The folder of what all versions of a locked kind's server have in common."""
VERSIONS = "versions"
"""The folder that has a folder for each version of a locked kind: its lock, and whatever else differs."""


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
    def locked(self) -> bool:
        """Whether of servers there are only the versions whose locks lie in the adapter. Clients are of any release."""
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


@dataclass(frozen=True)
class Subject:
    """What the user typed: `SDK[@VERSION][:MODE]`."""

    adapter: Adapter
    selection: Selection
    mode: str | None

    def __str__(self) -> str:
        return f"{self.adapter.name}@{self.selection}" + (f":{self.mode}" if self.mode else "")


@dataclass(frozen=True)
class Resolved:
    """A subject whose version is known to be published."""

    adapter: Adapter
    version: str
    mode: str | None


def resolve(text: str, say: Say | None = None, role: Role = Role.CLIENT) -> Resolved:
    """What the user typed, to one release.

    Raises `UsageProblem` for an unknown SDK, version or mode, with the nearest names. Whether this version has
    this mode is for its program to say. A server without a mode gets its adapter's first.
    """
    subject = parse_subject(text, load_all(), role)
    mode = subject.mode
    if role is Role.SERVER and mode is None:
        mode = next(iter(subject.adapter.modes(role)), None)
    return Resolved(subject.adapter, find_version(subject, say, role), mode)


def find_version(subject: Subject, say: Say | None = None, role: Role = Role.CLIENT) -> str:
    """The release that is meant, of those that a registry, the adapter's locks or this mcpace have."""
    adapter, selection = subject.adapter, subject.selection
    if adapter.install.kind is InstallKind.PYPI:
        return find_release(adapter.install.package, selection, say).version
    if adapter.install.kind is InstallKind.OWN:
        return choose(selection, [__version__], f"{adapter.name}@{selection} can't be had: it is the mcpace that runs,")
    if role is Role.CLIENT:
        return of_client(adapter, selection, say).version
    there_are = f"{adapter.name}@{selection} can't be had: it is built by a lock, and there are locks of"
    return choose(selection, locked_versions(adapter), there_are)


def locked_versions(adapter: Adapter) -> list[str]:
    """The versions that the adapter has a folder for, oldest first."""
    folder = adapter.folder / VERSIONS
    try:
        found = [entry.name for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
        versions = sorted(found, key=Version)
    except InvalidVersion as error:
        raise AdapterProblem(f"{folder}: {error}: its folders are named after versions") from None
    if not versions:
        raise AdapterProblem(f"{folder} has no versions: it needs a folder for each, with its lock")
    return versions


def find(name: str, role: Role = Role.CLIENT) -> Adapter:
    """One adapter by the name that users type. Raises `UsageProblem` where it isn't known, or has no such program."""
    return with_role(name, load_all(), role)


def with_role(name: str, adapters: dict[str, Adapter], role: Role) -> Adapter:
    able = sorted(known for known, adapter in adapters.items() if adapter.has(role))
    if name not in adapters:
        raise UnknownName("SDK", name, able)
    if name not in able:
        raise UsageProblem(f"{name} has no {role.value} here; with a {role.value}: {', '.join(able) or 'none'}")
    return adapters[name]


def parse_subject(text: str, adapters: dict[str, Adapter], role: Role = Role.CLIENT) -> Subject:
    """`SDK[@VERSION][:MODE]`; VERSION is a number, `latest` (also when left out), or `1.x`."""
    rest, colon, mode = text.partition(":")
    name, at, version = rest.partition("@")
    adapter = with_role(name, adapters, role)
    if (at and not version) or (colon and not mode):
        raise UsageProblem(f"{text!r} is incomplete: write SDK@VERSION or SDK@VERSION:MODE, like {name}@latest")
    if mode and mode not in adapter.modes(role):
        raise UnknownName(f"mode of {name}", mode, adapter.modes(role))
    return Subject(adapter, parse_selection(version or "latest"), mode or None)


def fill_in(command: tuple[str, ...], places: dict[str, str]) -> tuple[str, ...]:
    """Puts places into a command of adapter.toml. Not `format`: other braces are the command's own."""
    filled = []
    for word in command:
        for name, place in places.items():
            word = word.replace("{" + name + "}", place)
        filled.append(word)
    return tuple(filled)


def find_folder() -> Path:
    """The folder of all adapters: MCPACE_ADAPTERS, else inside the package, else in the source tree."""
    if chosen := os.environ.get(ADAPTERS_VARIABLE):
        if not Path(chosen).is_dir():
            raise AdapterProblem(f"{ADAPTERS_VARIABLE} names {chosen}, which is no folder")
        return Path(chosen).resolve()
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "adapters", package.parents[1] / "adapters"):
        if folder.is_dir():
            return folder
    raise AdapterProblem(f"no adapters beside {package}: set {ADAPTERS_VARIABLE} to the folder that has them")


def load_all(folder: Path | None = None) -> dict[str, Adapter]:
    """Every adapter by name."""
    folder = folder or find_folder()
    loaded = [load(path.parent) for path in sorted(folder.glob("*/adapter.toml"))]
    if not loaded:
        raise AdapterProblem(f"{folder} has no adapters: set {ADAPTERS_VARIABLE} to the folder that has them")
    return {adapter.name: adapter for adapter in loaded}


def load(folder: Path) -> Adapter:
    """One adapter. Raises `AdapterProblem`, naming file and key, for anything that isn't as described."""
    path = folder / "adapter.toml"
    try:
        table = Table(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        return read_adapter(table, folder.resolve())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AdapterProblem(f"{path} can't be read: {error}") from error


def read_adapter(table: Table, folder: Path) -> Adapter:
    if table.value("format", int) != FORMAT:
        raise AdapterProblem(f"{table.where} has another format than {FORMAT}: it needs another version of mcpace")
    name = table.value("name", str)
    if name != folder.name:
        raise AdapterProblem(f"{table.where}: the name {name!r} isn't that of its folder, {folder.name!r}")
    install = read_install(table.table("install"))
    client, server = table.optional("client"), table.optional("server")
    if client is None and server is None:
        raise AdapterProblem(f"{table.where} has neither [client] nor [server]: an adapter has a program")
    return Adapter(
        name=name,
        title=table.value("title", str),
        folder=folder,
        install=install,
        client=None if client is None else read_client(client, install),
        server=None if server is None else read_server(server),
        speaks=tuple(read_speaks(entry) for entry in table.tables("speaks")),
    )


def read_install(table: Table) -> Install:
    kind = table.value("kind", str)
    kinds = [known.value for known in InstallKind]
    if kind not in kinds:
        raise AdapterProblem(f"{table.where}: unknown kind {kind!r}; known: {', '.join(kinds)}")
    return Install(
        kind=InstallKind(kind),
        package=table.value("package", str),
        extras=table.strings("extras", ()),
        also=table.strings("also", ()),
        overrides=table.strings("overrides", ()),
        manifest=table.value("manifest", str) if table.has("manifest") else None,
        as_of_release=table.value("as_of_release", bool, True),
        margin_hours=float(table.value("margin_hours", (int, float), DEFAULT_MARGIN_HOURS)),
        python=table.specifiers("python", ""),
        check=table.strings("check", ()),
    )


def read_client(table: Table, install: Install) -> ClientCommand:
    entries = table.tables("releases")
    if install.kind.locked != bool(entries):
        rule = "must name what its client is built of" if install.kind.locked else "builds nothing of its own"
        raise AdapterProblem(f"{table.where}: the kind {install.kind.value} {rule}: [[client.releases]]")
    releases = tuple(
        ClientReleases(
            versions=entry.specifiers("versions"),
            package=entry.value("package", str, install.package),
            sources=entry.strings("sources"),
        )
        for entry in entries
    )
    return ClientCommand(table.strings("command"), table.strings("transports"), releases)


def read_server(table: Table) -> ServerCommand:
    modes = table.strings("modes")
    if not modes:
        raise AdapterProblem(f"{table.where}: modes must name at least one")
    return ServerCommand(
        command=table.strings("command"),
        transports=table.strings("transports"),
        modes=modes,
        also=table.strings("also", ()),
    )


def read_speaks(table: Table) -> Speaks:
    return Speaks(
        versions=table.specifiers("versions"),
        revisions=table.strings("revisions"),
        modes=table.strings("modes", ()),
        auth=table.strings("auth"),
    )


class Table:
    """A table of the file, whose keys are read with the type that they must have."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values = values
        self.where = where

    def value(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        found = self._values.get(key, default)
        # bool is an int to Python, but not to a reader of the file.
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            name = kind.__name__ if isinstance(kind, type) else "number"
            raise AdapterProblem(f"{self.where}: {key} must be a {name}, not {found!r}")
        return found

    def strings(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        found = self._values.get(key, default)
        if not isinstance(found, (list, tuple)) or not all(isinstance(entry, str) for entry in found):
            raise AdapterProblem(f"{self.where}: {key} must be a list of strings, not {found!r}")
        return tuple(found)

    def specifiers(self, key: str, default: str | None = None) -> SpecifierSet:
        text = self.value(key, str, default)
        try:
            return SpecifierSet(text)
        except InvalidSpecifier:
            raise AdapterProblem(f"{self.where}: {key} = {text!r} is no range of versions") from None

    def has(self, key: str) -> bool:
        return key in self._values

    def optional(self, key: str) -> Table | None:
        return self.table(key) if self.has(key) else None

    def table(self, key: str) -> Table:
        return Table(self.value(key, dict, {}), f"{self.where} [{key}]")

    def tables(self, key: str) -> list[Table]:
        found = self.value(key, list, [])
        return [Table(entry, f"{self.where} [[{key}]] {number}") for number, entry in enumerate(found, 1)]
