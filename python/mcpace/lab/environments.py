"""One folder for each release of an SDK, with the dependencies of its own time.

Old releases don't run beside today's dependencies, so an environment is resolved as of the release's upload. It is
built in a temporary folder beside its place and renamed once it is complete and has passed the adapter's check: what
was interrupted never counts as ready. Of two builders at once, the second waits at a lock and finds it built.

Deliberately absent: removing old environments. They are a cache, and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from mcpace.lab.adapters import Adapter, fill_in
from mcpace.lab.children import run_child
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.places import cache_folder, find_uv
from mcpace.lab.releases import Progress, find, parse_selection

MARKER = "mcpace-environment.json"
"""Written last into a finished environment."""

RECIPE_FORMAT = 1
"""Raise it when the way of building changes, so that older environments aren't taken for new ones."""

INSTALL_LIMIT_S = 600.0
CHECK_LIMIT_S = 120.0
LOCK_LIMIT_S = 900.0
LOCK_POLL_S = 0.1


@dataclass(frozen=True)
class Environment:
    path: Path
    python: Path
    """Its interpreter."""
    versions: dict[str, str]
    """Every package that was installed, by name."""

    @property
    def places(self) -> dict[str, str]:
        """What stands for a place in adapter.toml's commands."""
        return {"python": str(self.python)}


def ensure(adapter: Adapter, version: str, progress: Progress | None = None) -> Environment:
    """The environment of a release, built if need be. A finished one needs no network.

    Raises `EnvironmentProblem` when it can't be built, `UnknownVersion` for a version that was never published.
    """
    path = environment_path(adapter, version)
    ready = read_ready(path)
    if ready is not None:
        return ready
    say = progress or (lambda _: None)
    label = f"{adapter.name}@{version}"
    make_folder(path.parent)
    with locked(path.with_name(f"{path.name}.lock"), label, say):
        # The other builder may have finished while we waited.
        return read_ready(path) or build(adapter, version, path, say)


def build(adapter: Adapter, version: str, path: Path, say: Progress) -> Environment:
    """Builds into a temporary folder and renames it. The caller holds the lock."""
    label = f"{adapter.name}@{version}"
    release = find(adapter.install.package, parse_selection(version), say)
    remove_leavings(path)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".building", dir=path.parent))
    try:
        say(f"installing {label}")
        as_of = release.uploaded + timedelta(hours=adapter.install.margin_hours)
        install(adapter, release.version, as_of, folder)
        check(adapter, label, folder)
        marker = {"sdk": adapter.name, "version": release.version, "as_of": as_of.isoformat()}
        (folder / MARKER).write_text(json.dumps(marker | {"versions": installed(folder)}), encoding="utf-8")
        shutil.rmtree(path, ignore_errors=True)  # one without a marker: somebody else's leavings
        folder.rename(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"{label} can't be installed under {path.parent}: {error.strerror or error}"
        ) from error
    finally:
        # Ctrl-C comes through here too. After the rename there is nothing left to remove.
        shutil.rmtree(folder, ignore_errors=True)
    ready = read_ready(path)
    if ready is None:
        raise EnvironmentProblem(
            f"{label} was installed in {path}, but is gone again: is something clearing this folder?"
        )
    return ready


def install(adapter: Adapter, version: str, as_of: datetime, folder: Path) -> None:
    label = f"{adapter.name}@{version}"
    uv = str(find_uv())
    wanted = adapter.install
    interpreter = sys.executable if wanted.python.contains(running_python()) else str(wanted.python)
    run_uv([uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", interpreter, str(folder)], label)
    extras = f"[{','.join(wanted.extras)}]" if wanted.extras else ""
    requirements = [f"{wanted.package}{extras}=={version}", *wanted.also]
    time_machine = ["--exclude-newer", as_of.strftime("%Y-%m-%dT%H:%M:%SZ")] if wanted.as_of_release else []
    # Bytecode now, or the first trial would pay for it.
    options = ["--quiet", "--compile-bytecode", "--python", str(python_of(folder)), *time_machine]
    run_uv([uv, "pip", "install", *options, *requirements], label)


def run_uv(command: list[str], label: str) -> None:
    done = run_child(command, INSTALL_LIMIT_S)
    if done.timed_out:
        raise EnvironmentProblem(f"installing {label} took longer than {INSTALL_LIMIT_S:g} s, and was given up")
    if done.code != 0:
        raise EnvironmentProblem(f"{label} can't be installed: {in_one_line(done.stderr)}")


def check(adapter: Adapter, label: str, folder: Path) -> None:
    """Runs what the adapter says must work. A release that doesn't import is told from one that doesn't install."""
    if not adapter.install.check:
        return
    command = fill_in(adapter.install.check, {"python": str(python_of(folder)), "adapter": str(adapter.folder)})
    done = run_child(list(command), CHECK_LIMIT_S)
    if done.timed_out:
        raise EnvironmentProblem(f"{label} is installed, but its check took longer than {CHECK_LIMIT_S:g} s")
    if done.code != 0:
        raise EnvironmentProblem(f"{label} is installed, but doesn't import: {in_one_line(done.stderr, lines=1)}")


def installed(folder: Path) -> dict[str, str]:
    done = run_child(
        [str(find_uv()), "pip", "list", "--format", "json", "--python", str(python_of(folder))], CHECK_LIMIT_S
    )
    try:
        return {entry["name"]: entry["version"] for entry in json.loads(done.stdout)}
    except (ValueError, KeyError, TypeError):
        raise EnvironmentProblem(f"uv doesn't list what it installed: {in_one_line(done.stderr)}") from None


def environment_path(adapter: Adapter, version: str) -> Path:
    """Its place in the cache; the same for the same recipe, on the same platform, for the same Python."""
    wanted = adapter.install
    recipe = [
        RECIPE_FORMAT, wanted.kind.value, wanted.package, wanted.extras, wanted.also, wanted.as_of_release,
        wanted.margin_hours, str(wanted.python), wanted.check,
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:8]
    platform = sysconfig.get_platform()
    minor = ".".join(str(part) for part in sys.version_info[:2])
    return cache_folder() / "environments" / adapter.name / f"{version}-{platform}-py{minor}-{digest}"


def read_ready(path: Path) -> Environment | None:
    """A finished environment, or nothing. One whose interpreter has gone (an upgraded system) counts as none."""
    try:
        versions = json.loads((path / MARKER).read_text(encoding="utf-8"))["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    python = python_of(path)
    return Environment(path, python, versions) if python.exists() else None


@contextmanager
def locked(path: Path, label: str, say: Progress) -> Iterator[None]:
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


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def running_python() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def in_one_line(text: str, lines: int = 8, limit: int = 600) -> str:
    """The end of what a command said, as one sentence. uv draws its reasons as a tree: the drawing goes."""
    kept = [line.strip(" \t│├╰─▶×") for line in text.splitlines()]
    kept = [line for line in kept if line and not line.startswith("warning:")]
    return (" ".join(kept[-lines:]) or "it gave no reason")[-limit:].strip()
