"""Parser of adapter.toml. Every error names the file and the key."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from mcpace.lab.adapters.adapter import (
    Adapter,
    ClientCommand,
    ClientReleases,
    Install,
    InstallKind,
    ServerCommand,
    Speaks,
)
from mcpace.lab.errors import AdapterProblem

FORMAT = 1
ADAPTERS_VARIABLE = "MCPACE_ADAPTERS"
DEFAULT_MARGIN_HOURS = 24.0


def find_folder() -> Path:
    """The folder of all adapters: MCPACE_ADAPTERS, else inside the package, else in the source tree."""
    if chosen := os.environ.get(ADAPTERS_VARIABLE):
        if not Path(chosen).is_dir():
            raise AdapterProblem(f"{ADAPTERS_VARIABLE} names {chosen}, which is not a folder")
        return Path(chosen).resolve()
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "adapters", package.parents[1] / "adapters"):
        if folder.is_dir():
            return folder
    raise AdapterProblem(f"no adapters beside {package}: set {ADAPTERS_VARIABLE} to the folder that has them")


def load_all(folder: Path | None = None) -> dict[str, Adapter]:
    """Every adapter by name."""
    folder = folder or find_folder()
    loaded = [load_adapter(path.parent) for path in sorted(folder.glob("*/adapter.toml"))]
    if not loaded:
        raise AdapterProblem(f"{folder} has no adapters: set {ADAPTERS_VARIABLE} to the folder that has them")
    return {adapter.name: adapter for adapter in loaded}


def load_adapter(folder: Path) -> Adapter:
    """Loads one adapter. Raises `AdapterProblem` for a file that can't be read, and for an invalid key."""
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
    client, server = table.optional_table("client"), table.optional_table("server")
    if client is None and server is None:
        raise AdapterProblem(f"{table.where} has neither [client] nor [server]: an adapter has a program")
    return Adapter(
        name=name,
        title=table.value("title", str),
        folder=folder,
        install=install,
        client=None if client is None else read_client(client, install),
        server=None if server is None else read_server(server),
        speaks=tuple(read_speaks(entry) for entry in table.table_list("speaks")),
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
        manifest=table.value("manifest", str) if table.has_key("manifest") else None,
        as_of_release=table.value("as_of_release", bool, True),
        margin_hours=float(table.value("margin_hours", (int, float), DEFAULT_MARGIN_HOURS)),
        python=table.specifier_set("python", ""),
        check=table.strings("check", ()),
    )


def read_client(table: Table, install: Install) -> ClientCommand:
    entries = table.table_list("releases")
    if install.kind.is_built != bool(entries):
        rule = "must name what its client is built of" if install.kind.is_built else "builds nothing of its own"
        raise AdapterProblem(f"{table.where}: the kind {install.kind.value} {rule}: [[client.releases]]")
    releases = tuple(
        ClientReleases(
            versions=entry.specifier_set("versions"),
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
        also_for=read_requirements(table.table("also_for")),
    )


def read_requirements(table: Table) -> dict[str, tuple[str, ...]]:
    """Lists of requirements by workload."""
    return {workload: table.strings(workload) for workload in table.keys()}  # noqa: SIM118 - a table is no dict


def read_speaks(table: Table) -> Speaks:
    return Speaks(
        versions=table.specifier_set("versions"),
        revisions=table.strings("revisions"),
        modes=table.strings("modes", ()),
        auth=table.strings("auth"),
    )


class Table:
    """Table of the file. Each accessor checks the type of its key."""

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

    def specifier_set(self, key: str, default: str | None = None) -> SpecifierSet:
        text = self.value(key, str, default)
        try:
            return SpecifierSet(text)
        except InvalidSpecifier:
            raise AdapterProblem(f"{self.where}: {key} = {text!r} is no range of versions") from None

    def keys(self) -> list[str]:
        return list(self._values)

    def has_key(self, key: str) -> bool:
        return key in self._values

    def optional_table(self, key: str) -> Table | None:
        return self.table(key) if self.has_key(key) else None

    def table(self, key: str) -> Table:
        return Table(self.value(key, dict, {}), f"{self.where} [{key}]")

    def table_list(self, key: str) -> list[Table]:
        found = self.value(key, list, [])
        return [Table(entry, f"{self.where} [[{key}]] {number}") for number, entry in enumerate(found, 1)]
