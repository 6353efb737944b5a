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

from mcpace.lab.errors import AdapterProblem, UnknownName, UsageProblem
from mcpace.lab.releases import Progress, Selection, parse_selection
from mcpace.lab.releases import find as find_release

if TYPE_CHECKING:  # environments are built from adapters
    from mcpace.lab.environments import Environment

FORMAT = 1
ADAPTERS_VARIABLE = "MCPACE_ADAPTERS"
DEFAULT_MARGIN_HOURS = 24.0


class InstallKind(Enum):
    """Where releases come from. Each further kind brings its own installer."""

    PYPI = "pypi"


@dataclass(frozen=True)
class Install:
    kind: InstallKind
    package: str
    extras: tuple[str, ...]
    also: tuple[str, ...]
    """Further requirements, installed beside the package."""
    as_of_release: bool
    """Whether dependencies are resolved as of the release's own upload."""
    margin_hours: float
    python: SpecifierSet
    check: tuple[str, ...]
    """A command that must succeed before an environment counts as ready; empty for none."""


@dataclass(frozen=True)
class ClientCommand:
    command: tuple[str, ...]
    """With `{python}` and `{adapter}` still to be filled in."""
    transports: tuple[str, ...]


@dataclass(frozen=True)
class Speaks:
    """What a range of versions can do."""

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
    client: ClientCommand
    speaks: tuple[Speaks, ...]

    def client_command(self, environment: Environment) -> tuple[str, ...]:
        """How to start the client program in an environment."""
        places = {"python": str(environment.python), "adapter": str(self.folder)}
        return fill_in(self.client.command, places)

    def modes(self) -> list[str]:
        """The modes that any version has."""
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


def resolve(text: str, progress: Progress | None = None) -> Resolved:
    """What the user typed, to one release.

    Raises `UsageProblem` for an unknown SDK, version or mode, with the nearest names. Whether this version has
    this mode is for the client program to say.
    """
    subject = parse_subject(text, load_all())
    release = find_release(subject.adapter.install.package, subject.selection, progress)
    return Resolved(subject.adapter, release.version, subject.mode)


def find(name: str) -> Adapter:
    """One adapter by the name that users type. Raises `UnknownName`."""
    adapters = load_all()
    if name not in adapters:
        raise UnknownName("SDK", name, sorted(adapters))
    return adapters[name]


def parse_subject(text: str, adapters: dict[str, Adapter]) -> Subject:
    """`SDK[@VERSION][:MODE]`; VERSION is a number, `latest` (also when left out), or `1.x`."""
    rest, colon, mode = text.partition(":")
    name, at, version = rest.partition("@")
    if name not in adapters:
        raise UnknownName("SDK", name, sorted(adapters))
    if (at and not version) or (colon and not mode):
        raise UsageProblem(f"{text!r} is incomplete: write SDK@VERSION or SDK@VERSION:MODE, like {name}@latest")
    adapter = adapters[name]
    if mode and mode not in adapter.modes():
        raise UnknownName(f"mode of {name}", mode, adapter.modes())
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
    client = table.table("client")
    return Adapter(
        name=name,
        title=table.value("title", str),
        folder=folder,
        install=read_install(table.table("install")),
        client=ClientCommand(client.strings("command"), client.strings("transports")),
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
        as_of_release=table.value("as_of_release", bool, True),
        margin_hours=float(table.value("margin_hours", (int, float), DEFAULT_MARGIN_HOURS)),
        python=table.specifiers("python", ""),
        check=table.strings("check", ()),
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

    def table(self, key: str) -> Table:
        return Table(self.value(key, dict, {}), f"{self.where} [{key}]")

    def tables(self, key: str) -> list[Table]:
        found = self.value(key, list, [])
        return [Table(entry, f"{self.where} [[{key}]] {number}") for number, entry in enumerate(found, 1)]
