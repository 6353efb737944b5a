"""Environments are built once and atomically. Real installs of small packages from the index."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcpace.lab import paths
from mcpace.lab.adapters.adapter import Adapter
from mcpace.lab.adapters.toml_file import load_adapter
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.environments.environment import MARKER, ensure_environment, environment_path, find_ready
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import UnknownVersion
from mcpace.lab.errors import EnvironmentProblem

pytestmark = pytest.mark.network

LIMIT_S = 120.0
VERSION = "2.0.0"

# iniconfig: small, pure, without dependencies.
TOML = """
format = 1
name = "toy"
title = "toy"
[install]
kind = "pypi"
package = "iniconfig"
check = CHECK
[client]
command = ["{python}"]
transports = []
"""

BUILDER = """
import sys
from pathlib import Path
from mcpace.lab.adapters.toml_file import load_adapter
from mcpace.lab.environments.environment import ensure_environment
print("up", flush=True)
sys.stdin.readline()
environment = ensure_environment(load_adapter(Path(sys.argv[1])), sys.argv[2], say=lambda text: print(text, flush=True))
print(environment.path)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(folder))
    return folder


def toy(tmp_path: Path, check: list[str] | None = None) -> Adapter:
    folder = tmp_path / "toy"
    folder.mkdir(exist_ok=True)
    words = ["{python}", "-c", "import iniconfig"] if check is None else check
    (folder / "adapter.toml").write_text(TOML.replace("CHECK", json.dumps(words)))
    return load_adapter(folder)


def builder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(folder), VERSION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def leavings(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".building")]


def test_built_once_then_found_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = toy(tmp_path)
    said: list[str] = []
    first = ensure_environment(adapter, VERSION, said.append)
    assert said == ["installing toy@2.0.0"]
    assert first.versions == {"iniconfig": VERSION}
    assert Path(first.places["python"]).exists()
    assert not leavings(first.path)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple")
    assert ensure_environment(adapter, VERSION, said.append) == first
    assert len(said) == 1


def test_dependencies_are_of_the_release_s_own_time() -> None:
    """mcp 1.11.0 requires pydantic 2.8 or later, and doesn't import with today's pydantic."""

    from mcpace.lab.adapters.subject import find_adapter

    environment = ensure_environment(find_adapter("python"), "1.11.0")
    assert environment.versions["mcp"] == "1.11.0"
    assert environment.versions["pydantic"] == "2.11.7"


def test_two_builders_at_once_build_once(tmp_path: Path) -> None:
    adapter = toy(tmp_path)
    builders = [builder(adapter.folder) for _ in range(2)]
    for process in builders:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=LIMIT_S) for process in builders]
    assert [process.returncode for process in builders] == [0, 0], outputs
    said = [line for stdout, _ in outputs for line in stdout.splitlines()]
    assert said.count("installing toy@2.0.0") == 1
    path = environment_path(adapter, VERSION)
    assert said.count(str(path)) == 2
    assert not leavings(path)


def test_waiting_is_told_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = toy(tmp_path)
    path = environment_path(adapter, VERSION)
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(release_environment, "LOCK_LIMIT_S", 0.0)
    said: list[str] = []
    with path.with_name(f"{path.name}.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(EnvironmentProblem, match=r"another process has been installing toy@2\.0\.0"):
            ensure_environment(adapter, VERSION, said.append)
    assert said == ["waiting for another mcpace that is installing toy@2.0.0"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_never_counts_as_ready(tmp_path: Path, how: signal.Signals) -> None:
    """The build is stopped in the adapter's check, when only the marker is missing."""
    pipe = tmp_path / "reached"
    os.mkfifo(pipe)
    # Ends by itself with the builder, which can't end it after SIGKILL.
    wait = (
        f"import os, time; parent = os.getppid(); open({str(pipe)!r}, 'w').write('x')\n"
        "while os.getppid() == parent: time.sleep(0.01)"
    )
    stuck = toy(tmp_path, ["{python}", "-c", wait])
    path = environment_path(stuck, VERSION)
    process = builder(stuck.folder)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    reached = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert select.select([reached], [], [], LIMIT_S)[0], "the check never ran"
    os.close(reached)
    assert leavings(path)
    process.send_signal(how)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert find_ready(stuck, VERSION) is None
    assert not path.exists()
    if how is signal.SIGINT:
        assert not leavings(path)
    # The next builder clears up what a killed one left, and builds.
    mended = replace(stuck, install=replace(stuck.install, check=(*stuck.install.check[:2], "pass")))
    release_environment.remove_unfinished(path)
    assert not leavings(path)
    assert ensure_environment(mended, VERSION).versions == {"iniconfig": VERSION}


def test_a_folder_without_marker_is_built_anew(tmp_path: Path) -> None:
    adapter = toy(tmp_path)
    path = ensure_environment(adapter, VERSION).path
    (path / MARKER).unlink()
    (path / "stray").touch()
    assert ensure_environment(adapter, VERSION).path == path
    assert not (path / "stray").exists()


def test_another_recipe_is_another_environment(tmp_path: Path) -> None:
    adapter = toy(tmp_path)
    other = replace(adapter, install=replace(adapter.install, also=("pluggy",)))
    assert environment_path(adapter, VERSION) != environment_path(other, VERSION)


def test_unknown_version_names_the_nearest(tmp_path: Path, cache: Path) -> None:
    adapter = toy(tmp_path)
    with pytest.raises(UnknownVersion, match=r"iniconfig has no release 1\.1\.9; nearest: "):
        ensure_environment(adapter, "1.1.9")
    assert not leavings(environment_path(adapter, "1.1.9"))


def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    adapter = toy(tmp_path)
    impossible = replace(adapter, install=replace(adapter.install, also=("iniconfig==0.1",)))
    with pytest.raises(EnvironmentProblem) as caught:
        ensure_environment(impossible, VERSION)
    assert str(caught.value).startswith("toy@2.0.0 can't be installed: ")
    assert "iniconfig==0.1" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert not leavings(environment_path(impossible, VERSION))


def test_what_does_not_import_says_so(tmp_path: Path) -> None:
    adapter = toy(tmp_path, ["{python}", "-c", "import nonesuch"])
    with pytest.raises(EnvironmentProblem, match=r"doesn't import: ModuleNotFoundError: No module named 'nonesuch'"):
        ensure_environment(adapter, VERSION)
    assert find_ready(adapter, VERSION) is None


def test_a_check_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_environment, "CHECK_LIMIT_S", 0.5)
    adapter = toy(tmp_path, ["{python}", "-c", "import time; time.sleep(600)"])
    with pytest.raises(EnvironmentProblem, match=r"took longer than 0\.5 s"):
        ensure_environment(adapter, VERSION)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(EnvironmentProblem, match="MCPACE_CACHE"):
        ensure_environment(toy(tmp_path), VERSION)


def test_a_missing_uv_comes_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="pip install uv"):
        paths.find_uv()


def test_uv_s_tree_becomes_one_sentence() -> None:
    text = "warning: noise\n  × No solution found:\n  ╰─▶ Because a needs b,\n      we can conclude nothing.\n"
    assert in_one_line(text) == "No solution found: Because a needs b, we can conclude nothing."
    assert in_one_line("") == "it gave no reason"
