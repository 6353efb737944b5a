"""Commands run in a folder with hostile modules and settings, and with a hostile temporary folder.

The current folder may be a stranger's checkout, and other users may write to the temporary folder. No code there may
run, and no setting there may apply.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import neutral_folder
from support.commands import LIMIT_S, Ended, end, line, run, start_command

MODULES = (
    "mcpace", "mcpace_layers", "mcp", "fastmcp", "pydantic", "httpx", "uvicorn", "redis", "anyio", "sitecustomize",
    "usercustomize", "json", "argparse", "asyncio", "signal", "threading", "socket", "importlib", "typing", "logging",
)  # fmt: skip
"""Modules that the commands' children import."""
REFUSED = "http://127.0.0.1:1/"
"""Nobody listens there: an installation that obeys such a setting fails."""
SERVER = """
from mcpace import MCPServer
mcp = MCPServer("shop")
@mcp.tool()
def greet(name: str) -> str:
    return name
if __name__ == "__main__":
    mcp.run()
"""
VERSIONS = """
from mcpace.lab.environments.installers.cargo import rust_version
from mcpace.lab.environments.installers.steps import read_version
print(rust_version(), read_version(["go", "version"], r"go(\\d\\S*)"),
      read_version(["node", "--version"], r"v(\\S+)"),
      read_version(["java", "-version"], r'version "([^"]+)"'), read_version(["mvn", "--version"], r"Maven (\\S+)"))
"""
CALLED = ("--tool", "greet", "--args", '{"name": "a"}')


class Planted:
    """A folder that its user doesn't trust, and a record of the code in it that ran."""

    def __init__(self, place: Path) -> None:
        self.user, self.temporary, self._ran = place / "user", place / "tmp", place / "ran"
        for folder in (self.user, self.temporary):
            folder.mkdir()
            self._plant(folder)
        self.environment = {"TMPDIR": str(self.temporary), "MCPACE_CACHE": str(place / "cache"), "COLUMNS": "120"}
        self.server = place / "mine" / "server.py"
        self.server.parent.mkdir()
        self.server.write_text(SERVER)

    @property
    def stdio(self) -> str:
        """The user's own server, outside of the folder."""
        return f"stdio:{sys.executable} {self.server}"

    def run(self, *words: object) -> Ended:
        ended = run(*words, folder=self.user, environment=self.environment)
        assert self.ran() == []
        return ended

    def ran(self) -> list[str]:
        return self._ran.read_text().splitlines() if self._ran.exists() else []

    def _plant(self, folder: Path) -> None:
        note = f"open({str(self._ran)!r}, 'a').write(__file__ + '\\n')\n"
        for name in MODULES:
            if name in ("mcpace", "mcp", "importlib"):
                (folder / name).mkdir()
                (folder / name / "__init__.py").write_text(note)
            else:
                (folder / f"{name}.py").write_text(note)
        tool = folder / "toolchain" / "bin" / "rustc"
        tool.parent.mkdir(parents=True)
        tool.write_text(f"#!/bin/sh\necho $0 >> {self._ran}\n")
        tool.chmod(0o755)
        for other in ("cargo", "java", "node", "go"):
            (tool.parent / other).symlink_to(tool)
            (folder / other).symlink_to(tool)
        for name, text in {
            "uv.toml": f'index-url = "{REFUSED}"\n',
            "pyproject.toml": f'[tool.uv]\nindex-url = "{REFUSED}"\n',
            ".python-version": "3.1\n",
            "package.json": "{ broken",
            ".npmrc": f"registry={REFUSED}\n",
            "go.mod": "broken",
            "go.work": "broken",
            "rust-toolchain.toml": f'[toolchain]\npath = "{folder / "toolchain"}"\n',
            ".cargo/config.toml": f'[build]\nrustc-wrapper = "{tool}"\n',
            ".mvn/jvm.config": "-javaagent:planted.jar\n",
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


@pytest.mark.network
@pytest.mark.parametrize(
    "words",
    [
        ("clients", "python@1.12.1", "fastmcp@4.1.6", "--target", "profile:simple", "--trials", 1),
        ("clients", "typescript@1.32.2", "--target", "profile:simple", "--trials", 1),
        ("servers", "python@1.12.1:json", "mcpace-python", "--duration", "1s", "--rounds", 1, "--warm-up", "0s"),
        ("servers", "mcpace-python", "--workload", "shop", "--duration", "1s", "--rounds", 1, "--warm-up", "0s"),
    ],
    ids=["clients", "clients-npm", "servers", "servers-shop"],
)
def test_a_build_and_its_programs_use_nothing_of_the_folder(planted: Planted, words: tuple[object, ...]) -> None:
    ended = planted.run(*words, "--json")
    assert ended.code == 0, ended.stderr
    assert '"error": "' not in ended.stdout
    assert (planted.temporary / "uv.toml").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "STDIO", *CALLED, "--trials", 2),
        ("gate", "STDIO", "--base", "STDIO", *CALLED, "--trials", 8, "--tolerance", "1000%"),
        ("load", "STDIO", "--mix", "greet=1", "--args", 'greet={"name": "a"}', "--vus", 1, "--duration", "1s"),
        ("explain", "STDIO", *CALLED),
        ("layers", "SERVER:mcp", *CALLED, "--rounds", 2, "--batch", "5ms", "--warm-up", "0s"),
    ],
    ids=lambda words: words[0],
)
def test_what_a_server_of_ones_own_is_run_by_uses_nothing_of_the_folder(
    planted: Planted, words: tuple[object, ...]
) -> None:
    places = {"STDIO": planted.stdio, "SERVER:mcp": f"{planted.server}:mcp"}
    ended = planted.run(*(places.get(str(word), word) for word in words))
    assert ended.code in (0, 1), ended.stderr


def test_workers_use_nothing_of_the_folder(planted: Planted) -> None:
    words = ("serve", f"{planted.server}:mcp", "--workers", 2, "--port", 0)
    with start_command(*words, folder=planted.user, environment=planted.environment) as process:
        assert "serving" in line(process)
        process.terminate()
        assert end(process).code == 0
    assert planted.ran() == []


def test_a_recorded_server_uses_nothing_of_the_folder(planted: Planted) -> None:
    assert planted.run("record", "--upstream", planted.stdio, "--out", "of.jsonl.zst").code == 0


def test_toolchains_are_asked_outside_of_the_folder(planted: Planted) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", VERSIONS],
        cwd=planted.user,
        env={**os.environ, **planted.environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert planted.ran() == [] and "unknown" not in done.stdout, done.stdout


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path))
    neutral_folder().chmod(0o777)
    with pytest.raises(EnvironmentProblem, match="other users can write to"):
        neutral_folder()
