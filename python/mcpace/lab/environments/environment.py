"""One folder for each release of an SDK, with the dependencies of its own time.

It is built in a temporary folder beside its place, by the installer of its kind, and renamed once it is complete and
has passed the adapter's check: what was interrupted never counts as ready. Of two builders at once, the second waits at
a lock and finds it built. Clients and servers of one release have environments of their own where they need different
things, and share one where they don't.

Deliberately absent: removing old environments. They are a cache, and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mcpace.lab.adapters.adapter import Adapter, Role, fill_in
from mcpace.lab.environments.installers import INSTALLERS, Installed, Installer, Wanted
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import cache_folder
from mcpace.lab.processes.child_processes import run_child

MARKER = "mcpace-environment.json"
"""Written last into a finished environment."""

RECIPE_FORMAT = 2
"""Raise it when the way of building changes, so that older environments aren't taken for new ones."""

CHECK_LIMIT_S = 120.0
LOCK_LIMIT_S = 2_400.0
"""More than the longest build."""
LOCK_POLL_S = 0.1


@dataclass(frozen=True)
class Environment:
    path: Path
    places: dict[str, str]
    """What stands for a place in adapter.toml's commands: `python`, `program`, `node`, …"""
    versions: dict[str, str]
    """Every package that was installed, by name, and what it runs on."""
    dependencies_as_of: str | None = None
    """The day that the dependencies are of, where that isn't their release's time."""


def ensure(adapter: Adapter, version: str, say: Say | None = None, role: Role = Role.CLIENT) -> Environment:
    """The environment of a release, built if need be. A finished one needs no network.

    Raises `EnvironmentProblem` when it can't be built, `UnknownVersion` for a version that was never published.
    """
    wanted = Wanted(adapter, version, role)
    installer = INSTALLERS[adapter.install.kind]
    path = environment_path(adapter, version, role)
    say = say or (lambda _: None)
    if installer.cached and (ready := read_ready(path, installer)) is not None:
        return ready
    make_folder(path.parent)
    with locked(path.with_name(f"{path.name}.lock"), wanted.label, say):
        if not installer.cached:
            return build_in_place(installer, wanted, path, say)
        # The other builder may have finished while we waited.
        return read_ready(path, installer) or build(installer, wanted, path, say)


def build(installer: Installer, wanted: Wanted, path: Path, say: Say) -> Environment:
    """Builds into a temporary folder and renames it. The caller holds the lock."""
    remove_leavings(path)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".building", dir=path.parent))
    try:
        installed = installer.build(wanted, folder, say)
        check(installer, wanted, folder)
        marker = {"sdk": wanted.adapter.name, "version": wanted.version, **asdict(installed)}
        (folder / MARKER).write_text(json.dumps(marker), encoding="utf-8")
        shutil.rmtree(path, ignore_errors=True)  # one without a marker: somebody else's leavings
        folder.rename(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"{wanted.label} can't be installed under {path.parent}: {error.strerror or error}"
        ) from error
    finally:
        # Ctrl-C comes through here too. After the rename there is nothing left to remove.
        shutil.rmtree(folder, ignore_errors=True)
    ready = read_ready(path, installer)
    if ready is None:
        raise EnvironmentProblem(
            f"{wanted.label} was installed in {path}, but is gone again: is something clearing this folder?"
        )
    return ready


def build_in_place(installer: Installer, wanted: Wanted, path: Path, say: Say) -> Environment:
    """For what its own tool keeps fresh. The caller holds the lock."""
    make_folder(path)
    installed = installer.build(wanted, path, say)
    check(installer, wanted, path)
    return environment(path, installer, installed)


def check(installer: Installer, wanted: Wanted, folder: Path) -> None:
    """Runs what the adapter says must work. A release that doesn't import is told from one that doesn't install."""
    adapter, label = wanted.adapter, wanted.label
    if not adapter.install.check:
        return
    command = fill_in(adapter.install.check, {**installer.places(folder), "adapter": str(adapter.folder)})
    done = run_child(list(command), CHECK_LIMIT_S, cwd=folder)
    if done.timed_out:
        raise EnvironmentProblem(f"{label} is installed, but its check took longer than {CHECK_LIMIT_S:g} s")
    if done.code != 0:
        raise EnvironmentProblem(f"{label} is installed, but doesn't import: {in_one_line(done.stderr, lines=1)}")


def environment_path(adapter: Adapter, version: str, role: Role = Role.CLIENT) -> Path:
    """Its place in the cache; the same for the same recipe on the same platform."""
    install = adapter.install
    of_kind = INSTALLERS[install.kind].recipe(Wanted(adapter, version, role))
    recipe = [RECIPE_FORMAT, install.kind.value, install.check, *of_kind]
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:8]
    return cache_folder() / "environments" / adapter.name / f"{version}-{sysconfig.get_platform()}-{digest}"


def find_ready(adapter: Adapter, version: str, role: Role = Role.CLIENT) -> Environment | None:
    """A finished environment of a release, or nothing."""
    return read_ready(environment_path(adapter, version, role), INSTALLERS[adapter.install.kind])


def read_ready(path: Path, installer: Installer) -> Environment | None:
    """A finished environment, or nothing. One that has lost what it runs on counts as none."""
    try:
        marker = json.loads((path / MARKER).read_text(encoding="utf-8"))
        installed = Installed(marker["versions"], marker.get("dependencies_as_of"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not installer.stands(path):
        return None
    return environment(path, installer, installed)


def environment(path: Path, installer: Installer, installed: Installed) -> Environment:
    """What stands in a finished folder."""
    versions = {**installed.versions, **installer.runs_on()}
    return Environment(path, installer.places(path), versions, installed.dependencies_as_of)


@contextmanager
def locked(path: Path, label: str, say: Say) -> Iterator[None]:
    """Holds the lock file. The system frees it if we die, so a stale lock can't be."""
    with path.open("a") as file:
        deadline = time.monotonic() + LOCK_LIMIT_S
        told = False
        while not try_lock(file.fileno()):
            if not told:
                say(f"waiting for another mcpace that is installing {label}")
                told = True
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"another process has been installing {label} for {LOCK_LIMIT_S:g} s: end it, or try again later"
                )
            time.sleep(LOCK_POLL_S)
        yield


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"the folder {path} can't be made: {error.strerror}; set MCPACE_CACHE to one that can be written"
        ) from error


def remove_leavings(path: Path) -> None:
    """What a builder that was killed left behind. The caller holds the lock, so no other builder is at work."""
    for leaving in path.parent.glob(f".{path.name}.*.building"):
        shutil.rmtree(leaving, ignore_errors=True)
