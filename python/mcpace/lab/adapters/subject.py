"""Resolution of `SDK[@VERSION][:MODE]`, as users type it, to an adapter and a release.

This module installs and runs nothing: see `environments` for installing and `releases` for the known versions.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from mcpace import __version__
from mcpace.lab.adapters.adapter import VERSIONS, Adapter, InstallKind, Role
from mcpace.lab.adapters.toml_file import load_all
from mcpace.lab.environments.releases import Say, Selection, choose_version, client_release, parse_selection
from mcpace.lab.environments.releases import find_release as find_release
from mcpace.lab.errors import AdapterProblem, UnknownName, UsageProblem


@dataclass(frozen=True)
class Subject:
    """Parsed form of `SDK[@VERSION][:MODE]`."""

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


def resolve_subject(text: str, say: Say | None = None, role: Role = Role.CLIENT) -> Resolved:
    """Resolves `SDK[@VERSION][:MODE]` to one release.

    Raises `UsageProblem` for an unknown SDK, version or mode, with the most similar names. The program itself reports a
    mode that its version lacks. A server without a mode gets the first mode of its adapter.
    """
    subject = parse_subject(text, load_all(), role)
    mode = subject.mode
    if role is Role.SERVER and mode is None:
        mode = next(iter(subject.adapter.supported_modes(role)), None)
    return Resolved(subject.adapter, find_version(subject, say, role), mode)


def find_version(subject: Subject, say: Say | None = None, role: Role = Role.CLIENT) -> str:
    """Selects a release among those of the registry, of the adapter's lock files, or of the running mcpace."""
    adapter, selection = subject.adapter, subject.selection
    if adapter.install.kind is InstallKind.PYPI:
        return find_release(adapter.install.package, selection, say).version
    if adapter.install.kind is InstallKind.OWN:
        return choose_version(
            selection, [__version__], f"{adapter.name}@{selection} can't be had: it is the mcpace that runs,"
        )
    if role is Role.CLIENT:
        return client_release(adapter, selection, say).version
    there_are = f"{adapter.name}@{selection} can't be had: it is built by a lock, and there are locks of"
    return choose_version(selection, locked_versions(adapter), there_are)


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


def find_adapter(name: str, role: Role = Role.CLIENT) -> Adapter:
    """Finds an adapter by name. Raises `UsageProblem` where the name is unknown, or the adapter lacks the program."""
    return with_role(name, load_all(), role)


def with_role(name: str, adapters: dict[str, Adapter], role: Role) -> Adapter:
    able = sorted(known for known, adapter in adapters.items() if adapter.has_role(role))
    if name not in adapters:
        name = name.removesuffix("-sdk")  # the official repositories are called python-sdk, go-sdk, …
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
    if mode and mode not in adapter.supported_modes(role):
        raise UnknownName(f"mode of {name}", mode, adapter.supported_modes(role))
    return Subject(adapter, parse_selection(version or "latest"), mode or None)
