"""The command in a real virtual environment with the package's own dependencies and no extra."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mcpace
from mcpace.lab.paths import find_uv
from support.commands import LIMIT_S, Ended

ROOT = Path(__file__).parents[3]
INSTALL_LIMIT_S = 300
SERVER = """
from mcpace import MCPServer
mcp = MCPServer("adder")
@mcp.tool()
def add(a: int, b: int) -> int:
    return a + b
"""

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the environment. It imports mcpace from this checkout."""
    folder = tmp_path_factory.mktemp("bare")
    uv, python = str(find_uv()), folder / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--python", str(python), *project["dependencies"]],
    ):
        subprocess.run(command, check=True, timeout=INSTALL_LIMIT_S, cwd=folder)
    return python


def run(bare: Path, *words: str, code: str = "from mcpace.cli.main import main; main()") -> Ended:
    environment = {**os.environ, "PYTHONPATH": str(Path(mcpace.__file__).parents[1])}
    done = subprocess.run(
        [bare, "-c", code, *words],
        capture_output=True, text=True, env=environment, cwd=bare.parent, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def test_the_version_is_printed_without_the_parser_of_the_command_line(bare: Path) -> None:
    listing = "from mcpace.cli.main import main; import sys; main(); print(*sys.modules)"
    ended = run(bare, "--version", code=listing)
    assert (ended.code, ended.stderr) == (0, "")
    version, modules = ended.stdout.splitlines()
    assert version == f"mcpace {mcpace.__version__}"
    assert not {"typer", "pydantic", "rich", "mcpace._core"} & set(modules.split())


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_the_list_of_commands_needs_no_extra(words: tuple[str, ...], bare: Path) -> None:
    listed = run(bare, *words)
    lines = (listed.stdout + listed.stderr).splitlines()
    assert {"measure", "serve", "report", "doctor"} <= {line.split()[0] for line in lines if line.startswith("  ")}


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "profile:simple"),
        ("explain", "profile:simple"),
        ("clients", "python@1.12.1", "--target", "profile:simple"),
        ("servers", "python"),
        ("gate", "profile:simple", "--base", "profile:simple"),
        ("compare", "a.json", "b.json"),
        ("gateway", "--direct", "profile:simple", "--through", "serve:proxy {direct}"),
        ("replicas", "2", "--", "true"),
        ("bisect", "python", "--good", "1.11.0", "--bad", "1.13.0", "--target", "profile:simple"),
        ("ui",),
        ("demo",),
        ("mcp",),
    ],
    ids=lambda words: words[0],
)
def test_a_command_of_the_lab_says_what_to_install(words: tuple[str, ...], bare: Path) -> None:
    ended = run(bare, *words)
    assert (ended.code, ended.stdout) == (3, "")
    assert re.fullmatch(
        r"this command needs \w+, which is not installed: pip install 'mcpace\[lab\]'", ended.sentence()
    )


@pytest.mark.parametrize("words", [(), ("--workers", "local:1")])
def test_load_needs_no_extra(words: tuple[str, ...], bare: Path) -> None:
    ended = run(bare, "load", "profile:simple", "--vus", "1", "--max-calls", "5", "--warm-up", "0s", "--json", *words)
    assert (ended.code, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["kind"] == "load"


def test_serve_needs_no_extra(bare: Path) -> None:
    (bare.parent / "adder.py").write_text(SERVER)
    words = [str(bare), "-m", "mcpace", "serve", "adder.py", "--transport", "stdio"]
    environment = {**os.environ, "PYTHONPATH": str(Path(mcpace.__file__).parents[1])}
    ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    done = subprocess.run(
        words, input=ping, capture_output=True, text=True, env=environment, cwd=bare.parent, timeout=LIMIT_S, check=True
    )
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_doctor_lists_the_missing_extra_with_the_command_that_installs_it(bare: Path) -> None:
    ended = run(bare, "doctor", "--json")
    assert (ended.code, ended.stderr) == (0, "")
    pieces = {piece["name"]: piece for piece in json.loads(ended.stdout)["pieces"]}
    lab = pieces["mcpace[lab]"]
    assert (lab["present"], lab["install"]) == (False, "pip install 'mcpace[lab]'")
    assert "numpy" in lab["found"]
    assert "install: pip install 'mcpace[lab]'" in run(bare, "doctor").stdout
