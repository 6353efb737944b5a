"""Installers of kinds with committed locks, with packages without dependencies: real toolchains, no registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcpace import __version__
from mcpace.lab import paths
from mcpace.lab.adapters import subject, toml_file
from mcpace.lab.adapters.adapter import Adapter, Role
from mcpace.lab.adapters.toml_file import load_adapter
from mcpace.lab.clients.run_clients import prepare
from mcpace.lab.environments.environment import Environment, ensure_environment, environment_path
from mcpace.lab.environments.installers.steps import ToolchainMissing
from mcpace.lab.environments.releases import UnknownVersion, parse_selection
from mcpace.lab.errors import AdapterProblem, EnvironmentProblem, UsageProblem
from mcpace.lab.progress import Silent

LIMIT_S = 60.0

TOML = """
format = 1
name = "toy"
title = "toy"
[install]
kind = "KIND"
package = "toy"
MORE
[server]
command = COMMAND
transports = ["http"]
modes = ["sse", "json"]
"""
COMMANDS = {
    "cargo": ["{program}"],
    "go": ["{program}"],
    "npm": ["{node}", "{built}/server.mjs"],
    "maven": ["{java}", "-cp", "{built}/target", "Server"],
    "own": ["{program}"],
}
# Sources of a program for each kind. It prints the version that was filled in, or the one in its lock's folder.
SOURCES = {
    "cargo": {
        "source/Cargo.toml": '[package]\nname = "server"\nversion = "{version}"\nedition = "2021"\n[workspace]\n',
        "source/src/main.rs": 'fn main() { println!("{}", env!("CARGO_PKG_VERSION")); }\n',
        "versions/1.2.0/Cargo.lock": 'version = 4\n\n[[package]]\nname = "server"\nversion = "1.2.0"\n',
        "versions/1.10.0/Cargo.lock": 'version = 4\n\n[[package]]\nname = "server"\nversion = "1.10.0"\n',
    },
    "go": {
        "source/go.mod": "module example.com/v{version}\n\ngo 1.21\n",
        "source/main.go": (
            'package main\n\nimport (\n\t"fmt"\n\t"runtime/debug"\n)\n\nfunc main() {\n'
            '\tinfo, _ := debug.ReadBuildInfo()\n\tfmt.Println(info.Main.Path[len("example.com/v"):])\n}\n'
        ),
        "versions/1.2.0/go.sum": "",
        "versions/1.10.0/go.sum": "",
    },
    "npm": {
        "source/package.json": '{"name": "server", "version": "{version}", "private": true}',
        "source/server.mjs": (
            'import { readFileSync } from "node:fs";\n'
            'console.log(JSON.parse(readFileSync(new URL("package.json", import.meta.url))).version);\n'
        ),
        "versions/1.2.0/package-lock.json": (
            '{"name": "server", "version": "1.2.0", "lockfileVersion": 3, "packages": '
            '{"": {"name": "server", "version": "1.2.0"}}}'
        ),
        "versions/1.10.0/package-lock.json": (
            '{"name": "server", "version": "1.10.0", "lockfileVersion": 3, "packages": '
            '{"": {"name": "server", "version": "1.10.0"}}}'
        ),
    },
    "maven": {"source/pom.xml": "<project/>", "versions/1.2.0/.keep": "", "versions/1.10.0/.keep": ""},
    "own": {},
}
BUILT = ("cargo", "go", "npm")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(folder))
    return folder


def toy(tmp_path: Path, kind: str, more: str = "") -> Adapter:
    folder = tmp_path / "toy"
    for name, text in SOURCES[kind].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    toml = TOML.replace("KIND", kind).replace("MORE", more).replace("COMMAND", json.dumps(COMMANDS[kind]))
    (folder / "adapter.toml").write_text(toml)
    return load_adapter(folder)


def server(adapter: Adapter, version: str, said: list[str] | None = None) -> Environment:
    return ensure_environment(adapter, version, None if said is None else said.append, Role.SERVER)


def printed(adapter: Adapter, environment: Environment) -> str:
    done = subprocess.run(
        adapter.server_command(environment), capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("kind", BUILT)
def test_built_by_its_lock_and_found_again(tmp_path: Path, kind: str) -> None:
    adapter = toy(tmp_path, kind)
    said: list[str] = []
    first = server(adapter, "1.2.0", said)
    assert len(said) == 1 and "toy@1.2.0" in said[0]
    assert printed(adapter, first) == "1.2.0"
    assert server(adapter, "1.2.0", said) == first
    assert len(said) == 1
    assert printed(adapter, server(adapter, "1.10.0")) == "1.10.0"


@pytest.mark.parametrize("kind", BUILT)
def test_what_it_runs_on_is_among_its_versions(tmp_path: Path, kind: str) -> None:
    tool = {"cargo": "rustc", "go": "go", "npm": "node"}[kind]
    assert server(toy(tmp_path, kind), "1.2.0").versions[tool][0].isdigit()


def test_what_was_compiled_outlives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """The target folder is kept until there is a binary, and then removed."""
    adapter = toy(tmp_path, "cargo")
    monkeypatch.setattr("mcpace.lab.environments.installers.cargo.program_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server(adapter, "1.2.0")
    [halfway] = (cache / "builds").iterdir()
    assert (halfway / "release" / "server").exists()
    monkeypatch.undo()
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(cache))
    assert printed(adapter, server(adapter, "1.2.0")) == "1.2.0"
    assert not list((cache / "builds").iterdir())


def interrupted(folder: Path) -> Path:
    raise KeyboardInterrupt


def test_a_changed_source_is_another_environment(tmp_path: Path) -> None:
    adapter = toy(tmp_path, "go")
    before = environment_path(adapter, "1.2.0", Role.SERVER)
    (adapter.folder / "source" / "target").mkdir()
    (adapter.folder / "source" / "target" / "leavings").touch()
    assert environment_path(adapter, "1.2.0", Role.SERVER) == before
    (adapter.folder / "source" / "more.go").write_text("package main\n")
    assert environment_path(adapter, "1.2.0", Role.SERVER) != before


def test_a_version_s_own_file_wins_and_keeps_its_braces(tmp_path: Path) -> None:
    adapter = toy(tmp_path, "npm")
    own = adapter.folder / "versions" / "1.2.0"
    (own / "server.mjs").write_text('console.log("its own");\n')
    (own / "package.json").write_text('{"name": "server", "version": "1.2.0", "description": "{version}"}')
    built = server(adapter, "1.2.0")
    assert printed(adapter, built) == "its own"
    assert "{version}" in (built.path / "package.json").read_text()


@pytest.mark.parametrize(
    ("kind", "broken", "says"),
    [
        ("cargo", {"source/src/main.rs": "fn main() { nonesuch() }"}, "cannot find function `nonesuch`"),
        ("cargo", {"versions/1.2.0/Cargo.lock": SOURCES["cargo"]["versions/1.10.0/Cargo.lock"]}, "--locked was passed"),
        ("go", {"source/main.go": "package main\nfunc main() { nonesuch() }\n"}, "undefined: nonesuch"),
        ("go", {"source/go.mod": "module x\ngo 1.21\nrequire example.com/y v1.0.0\n"}, ""),
        ("npm", {"versions/1.2.0/package-lock.json": None}, "existing package-lock.json"),
    ],
)
def test_what_cannot_be_built_says_why(tmp_path: Path, kind: str, broken: dict[str, str | None], says: str) -> None:
    adapter = toy(tmp_path, kind)
    for name, text in broken.items():
        (adapter.folder / name).unlink() if text is None else (adapter.folder / name).write_text(text)
    if not says:  # a requirement that nothing imports and nothing sums: Go builds, by the lock as it is
        (adapter.folder / "source" / "main.go").write_text('package main\nimport _ "example.com/y"\nfunc main() {}\n')
        says = "missing go.sum entry"
    with pytest.raises(EnvironmentProblem) as caught:
        server(adapter, "1.2.0")
    assert str(caught.value).startswith("toy@1.2.0 can't be installed: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(environment_path(adapter, "1.2.0", Role.SERVER).parent.glob(".*.building"))


@pytest.mark.parametrize(
    ("kind", "remedy"), [("cargo", "rustup.rs"), ("go", "golang-go"), ("npm", "nodejs"), ("maven", "default-jdk")]
)
def test_a_missing_toolchain_comes_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, remedy: str
) -> None:
    adapter = toy(tmp_path, kind)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ToolchainMissing, match=rf"toy@1\.2\.0 needs the command \w+, which is missing: .*{remedy}"
    ) as caught:
        server(adapter, "1.2.0")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("kind", ["cargo", "go", "npm", "maven"])
def test_versions_are_those_with_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    adapter = toy(tmp_path, kind)
    monkeypatch.setenv(toml_file.ADAPTERS_VARIABLE, str(tmp_path))
    assert subject.locked_versions(adapter) == ["1.2.0", "1.10.0"]
    chosen = {
        text: subject.resolve_subject(f"toy{text}", role=Role.SERVER)
        for text in ("", "@latest", "@1.x", "@1.2", "@1.2.0:json")
    }
    assert {text: found.version for text, found in chosen.items()} == {
        "": "1.10.0", "@latest": "1.10.0", "@1.x": "1.10.0", "@1.2": "1.2.0", "@1.2.0:json": "1.2.0",
    }  # fmt: skip
    assert (chosen[""].mode, chosen["@1.2.0:json"].mode) == ("sse", "json")
    with pytest.raises(UnknownVersion, match=r"toy@2\.x can't be had: .* locks of 1\.2\.0, 1\.10\.0$") as caught:
        subject.resolve_subject("toy@2.x", role=Role.SERVER)
    assert caught.value.exit_code == 2


def test_a_prerelease_is_the_latest_only_where_nothing_else_is() -> None:

    from mcpace.lab.environments.releases import choose_version

    latest = parse_selection("latest")
    assert choose_version(latest, ["1.0.0", "2.0.0b1"], "") == "1.0.0"
    assert choose_version(latest, ["2.0.0b1"], "") == "2.0.0b1"
    assert choose_version(parse_selection("2.x"), ["1.0.0", "2.0.0-beta.1"], "") == "2.0.0-beta.1"


def test_folders_that_are_no_versions(tmp_path: Path) -> None:
    adapter = toy(tmp_path, "go")
    (adapter.folder / "versions" / "newest").mkdir()
    with pytest.raises(AdapterProblem, match="named after versions"):
        subject.locked_versions(adapter)
    with pytest.raises(AdapterProblem, match="needs a folder for each"):
        subject.locked_versions(toy(tmp_path / "other", "own"))


def test_ours_is_the_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy(tmp_path, "own", 'manifest = "Cargo.toml"')
    monkeypatch.setenv(toml_file.ADAPTERS_VARIABLE, str(tmp_path))
    resolved = subject.resolve_subject("toy", role=Role.SERVER)
    assert resolved.version == __version__
    with pytest.raises(UnknownVersion, match=r"toy@77\.0 can't be had: it is the mcpace that runs, \d"):
        subject.resolve_subject("toy@77.0", role=Role.SERVER)
    # Not a checkout: there is nothing to build it from.
    with pytest.raises(EnvironmentProblem, match="run mcpace from a checkout of its repository"):
        server(resolved.adapter, resolved.version)


CLIENT = """
[client]
command = ["{program}"]
transports = ["http"]
[[client.releases]]
versions = "<2"
package = "old-toy"
sources = ["client"]
"""
# Stand-ins for toolchains: they write down what they are told and what lies where they are.
NPM = """\
import json, os, pathlib, sys
if sys.argv[1] == "view":
    print(json.dumps({"1.2.0": "2025-03-01T00:00:00Z"}))
    sys.exit()
before = [word for word in sys.argv if word.startswith("--before=")]
with open(os.environ["TOLD"], "a") as told:
    print(sys.argv[1], *before, json.loads(pathlib.Path("package.json").read_text())["dependencies"], file=told)
if before and "AWAY" in os.environ:
    print("npm error code ECONNREFUSED\\nnpm error the registry is away", file=sys.stderr)
    sys.exit(1)
if before and "MIRROR" in os.environ:
    pathlib.Path("node_modules/half").mkdir(parents=True)
    pathlib.Path("package-lock.json").write_text("half")
    print("npm error code ETARGET\\nnpm error no version of leftpad before that", file=sys.stderr)
    sys.exit(1)
assert not pathlib.Path("package-lock.json").exists() and not pathlib.Path("node_modules").exists()
pathlib.Path("package-lock.json").write_text('{"packages": {"node_modules/old-toy": {"version": "1.2.0"}}}')
"""
CARGO = """\
import json, os, pathlib, sys
if sys.argv[1] == "metadata":
    manifest = pathlib.Path(sys.argv[-1])
    assert 'old-toy = { version = "=1.2.0"' in manifest.read_text()
    published = pathlib.Path(os.environ["TOLD"]).with_name("published")
    published.mkdir()
    (published / "Cargo.lock").write_text('[[package]]\\nname = "leftpad"\\nversion = "0.1.0"\\nsource = "r"\\n')
    print(json.dumps({"packages": [{"name": "old-toy", "manifest_path": str(published / "Cargo.toml")}]}))
    sys.exit()
lock = pathlib.Path("Cargo.lock")
with open(os.environ["TOLD"], "a") as told:
    print(sys.argv[1], "--locked" in sys.argv, "leftpad" in lock.read_text(), file=told)
built = pathlib.Path(sys.argv[sys.argv.index("--target-dir") + 1], "release", "client")
built.parent.mkdir(parents=True)
built.touch()
"""
GO = """\
import os, pathlib, sys
if sys.argv[1] == "build":
    with open(os.environ["TOLD"], "a") as told:
        print([word for word in sys.argv if word.startswith("-mod=")], file=told)
    built = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
    built.parent.mkdir()
    built.touch()
"""
MANIFESTS = {
    "npm": {"client/package.json": '{"dependencies": {"old-toy": "{version}"}}'},
    "cargo": {"client/Cargo.toml": "# {version}"},
    "go": {"client/go.mod": "module x\nrequire example.com/old-toy v{version}\n"},
}


class Said(Silent):
    """Progress that collects the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], tuple[Environment, str]]:
    """Builds a toy's client with a stand-in for its toolchain. Returns the result and the stand-in's arguments."""
    told = tmp_path / "told"
    monkeypatch.setenv("TOLD", str(told))

    def build(kind: str, source: str) -> tuple[Environment, str]:
        folder = tmp_path / "toy"
        for name, text in MANIFESTS[kind].items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        toml = TOML.replace("KIND", kind).replace("MORE", "").replace("COMMAND", json.dumps(COMMANDS[kind]))
        (folder / "adapter.toml").write_text(toml + CLIENT)
        stand_in = tmp_path / "bin" / kind
        stand_in.parent.mkdir()
        stand_in.write_text(f"#!{sys.executable}\n{source}")
        stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
        adapter = load_adapter(folder)
        return ensure_environment(adapter, "1.2.0", said.append), told.read_text()

    said: list[str] = []
    build.said = said  # type: ignore[attr-defined]
    build.adapter = lambda: load_adapter(tmp_path / "toy")  # type: ignore[attr-defined]
    return build


def test_a_client_of_npm_gets_the_dependencies_of_its_time(client: Any) -> None:
    environment, told = client("npm", NPM)
    assert told == "install --before=2025-03-02T00:00:00Z {'old-toy': '1.2.0'}\n"
    assert environment.versions["old-toy"] == "1.2.0"


def test_or_today_s_where_a_mirror_came_later(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR", "1")
    environment, told = client("npm", NPM)
    assert [line.split(" {")[0] for line in told.splitlines()] == ["install --before=2025-03-02T00:00:00Z", "install"]
    assert any("no version of leftpad before that; going on with today's" in line for line in client.said)
    # Later uses of the environment are told, too.
    assert environment.dependencies_as_of == datetime.now(UTC).date().isoformat()
    again, said = ensure_environment(client.adapter(), "1.2.0"), Said()
    assert again.dependencies_as_of == environment.dependencies_as_of
    prepare(subject.Resolved(client.adapter(), "1.2.0", None), said)
    assert said.notes == [f"toy@1.2.0: its dependencies are of {again.dependencies_as_of}, not of its release"]


def test_a_registry_that_is_away_is_no_mirror_s_gap(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWAY", "1")
    with pytest.raises(EnvironmentProblem, match="the registry is away"):
        client("npm", NPM)
    assert client.said[-1].startswith("installing")
    monkeypatch.delenv("AWAY")
    assert ensure_environment(client.adapter(), "1.2.0").dependencies_as_of is None


def test_a_client_of_cargo_is_built_by_the_crate_s_own_lock(client: Any) -> None:
    environment, told = client("cargo", CARGO)
    assert told == "build False True\n"
    assert environment.versions["leftpad"] == "0.1.0"
    assert Path(environment.places["program"]).is_file()


def test_a_client_of_go_may_complete_its_own_requirements(client: Any) -> None:
    environment, told = client("go", GO)
    assert told == "['-mod=mod']\n"
    assert environment.versions["example.com/old-toy"] == "1.2.0"


def test_an_adapter_without_the_program_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy(tmp_path, "go")
    monkeypatch.setenv(toml_file.ADAPTERS_VARIABLE, str(tmp_path))
    with pytest.raises(UsageProblem, match="toy has no client here; with a client: none"):
        subject.resolve_subject("toy")
    assert subject.find_adapter("toy", Role.SERVER).name == "toy"
