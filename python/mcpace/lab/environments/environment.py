"""Environments: one folder for each release of an SDK, with dependencies as of the release's time.

An installer builds an environment in a temporary folder. The folder is renamed once it is complete and has passed the
adapter's check, so an interrupted build never counts as ready. When two processes build one environment, the second
waits for a lock and then uses the finished environment. Client and server of a release share an environment, unless
their requirements differ.

Deliberately absent: removing old environments. They are a cache, and may be deleted at any time.
"""

from __future__ import annotations

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
from mcpace.lab.environments.installers import INSTALLERS, Installed, Installer, InstallRequest
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import cache_folder
from mcpace.lab.processes.child_processes import run_child
from mcpace.system.files import try_lock

MARKER = "mcpace-environment.json"
"""Marker file, written last into a finished environment."""

RECIPE_FORMAT = 2
"""Increase this number when the build procedure changes, so that older environments aren't reused."""

CHECK_LIMIT_S = 120.0
LOCK_LIMIT_S = 2_400.0
"""Seconds to wait for the lock: more than the longest build."""
LOCK_POLL_S = 0.1


@dataclass(frozen=True)
class Environment:
    path: Path
    places: dict[str, str]
    """Values of the placeholders in adapter.toml's commands: `python`, `program`, `node`, …"""
    versions: dict[str, str]
    """Versions of all installed packages and of the runtime, by name."""
    dependencies_as_of: str | None = None
    """Date of the dependencies, where they aren't as of the release's time."""


def ensure_environment(
    adapter: Adapter,
    version: str,
    say: Say | None = None,
    role: Role = Role.CLIENT,
    workload: str | None = None,
) -> Environment:
    """Returns the environment of a release and builds it if necessary. A finished environment needs no network.

    Raises `EnvironmentProblem` where it can't be built, and `UnknownVersion` for a version that was never published.
    """
    request = InstallRequest(adapter, version, role, workload)
    installer = INSTALLERS[adapter.install.kind]
    path = environment_path(adapter, version, role, workload)
    say = say or (lambda _: None)
    if installer.cached and (ready := read_ready(path, installer)) is not None:
        return ready
    make_folder(path.parent)
    with hold_lock(path.with_name(f"{path.name}.lock"), request.release_label, say):
        if not installer.cached:
            return build_in_place(installer, request, path, say)
        # Another process may have finished the build during the wait.
        return read_ready(path, installer) or build_environment(installer, request, path, say)


def build_environment(installer: Installer, request: InstallRequest, path: Path, say: Say) -> Environment:
    """Builds into a temporary folder and renames it. The caller holds the lock."""
    with temporary_build(path, request.release_label) as folder:
        installed = installer.build(request, folder, say)
        check_environment(installer, request, folder)
        marker = {"sdk": request.adapter.name, "version": request.version, **asdict(installed)}
        (folder / MARKER).write_text(json.dumps(marker), encoding="utf-8")
    ready = read_ready(path, installer)
    if ready is None:
        raise EnvironmentProblem(
            f"{request.release_label} was installed in {path}, but is gone again: is something clearing this folder?"
        )
    return ready


@contextmanager
def temporary_build(path: Path, label: str) -> Iterator[Path]:
    """Yields a temporary folder beside ``path``, which is renamed to ``path`` at the end. The caller holds the lock."""
    remove_unfinished(path)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".building", dir=path.parent))
    try:
        yield folder
        shutil.rmtree(path, ignore_errors=True)  # a folder without a marker is an unfinished build
        folder.rename(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"{label} can't be installed under {path.parent}: {error.strerror or error}"
        ) from error
    finally:
        # This also runs on Ctrl-C. After the rename, the folder no longer exists.
        shutil.rmtree(folder, ignore_errors=True)


def build_in_place(installer: Installer, request: InstallRequest, path: Path, say: Say) -> Environment:
    """Builds in the final folder, for kinds whose own tool detects changes. The caller holds the lock."""
    make_folder(path)
    installed = installer.build(request, path, say)
    check_environment(installer, request, path)
    return describe_environment(path, installer, installed)


def check_environment(installer: Installer, request: InstallRequest, folder: Path) -> None:
    """Runs the adapter's check command. Its errors say that the release was installed but doesn't import."""
    adapter, label = request.adapter, request.release_label
    if not adapter.install.check:
        return
    command = fill_in(adapter.install.check, {**installer.command_values(folder), "adapter": str(adapter.folder)})
    done = run_child(list(command), CHECK_LIMIT_S, cwd=folder)
    if done.timed_out:
        raise EnvironmentProblem(f"{label} is installed, but its check took longer than {CHECK_LIMIT_S:g} s")
    if done.code != 0:
        raise EnvironmentProblem(f"{label} is installed, but doesn't import: {in_one_line(done.stderr, lines=1)}")


def environment_path(adapter: Adapter, version: str, role: Role = Role.CLIENT, workload: str | None = None) -> Path:
    """Path in the cache, determined by the recipe and the platform."""
    install = adapter.install
    of_kind = INSTALLERS[install.kind].recipe(InstallRequest(adapter, version, role, workload))
    recipe = [RECIPE_FORMAT, install.kind.value, install.check, *of_kind]
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:8]
    return cache_folder() / "environments" / adapter.name / f"{version}-{sysconfig.get_platform()}-{digest}"


def find_ready(
    adapter: Adapter, version: str, role: Role = Role.CLIENT, workload: str | None = None
) -> Environment | None:
    """Returns the finished environment of a release; `None` where there is none."""
    path = environment_path(adapter, version, role, workload)
    return read_ready(path, INSTALLERS[adapter.install.kind])


def read_ready(path: Path, installer: Installer) -> Environment | None:
    """Reads a finished environment; `None` where there is none, or where its runtime is gone."""
    try:
        marker = json.loads((path / MARKER).read_text(encoding="utf-8"))
        installed = Installed(marker["versions"], marker.get("dependencies_as_of"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not installer.is_usable(path):
        return None
    return describe_environment(path, installer, installed)


def describe_environment(path: Path, installer: Installer, installed: Installed) -> Environment:
    """Describes the environment in a finished folder."""
    versions = {**installed.versions, **installer.runtime_versions()}
    return Environment(path, installer.command_values(path), versions, installed.dependencies_as_of)


@contextmanager
def hold_lock(path: Path, label: str, say: Say) -> Iterator[None]:
    """Holds the lock file. The system releases the lock when this process ends, so no stale lock remains."""
    with path.open("a") as file:
        deadline = time.monotonic() + LOCK_LIMIT_S
        is_announced = False
        while not try_lock(file.fileno()):
            if not is_announced:
                say(f"waiting for another mcpace that is installing {label}")
                is_announced = True
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"another process has been installing {label} for {LOCK_LIMIT_S:g} s: end it, or try again later"
                )
            time.sleep(LOCK_POLL_S)
        yield


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"the folder {path} can't be made: {error.strerror}; set MCPACE_CACHE to one that can be written"
        ) from error


def remove_unfinished(path: Path) -> None:
    """Removes folders of killed builds. The caller holds the lock, so no other build is running."""
    for leaving in path.parent.glob(f".{path.name}.*.building"):
        shutil.rmtree(leaving, ignore_errors=True)
