"""The README's first server, started with `mcpace serve`, as the Inspector's command line client sees it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from served import serving

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "interop" / "inspector"
FOLDER = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "interop" / "inspector"

INSTALL_LIMIT_S = 600
CALL_LIMIT_S = 120

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def inspect() -> Inspect:
    """Runs the pinned Inspector, with the Node that it is pinned with, against an endpoint or a command."""
    npm = shutil.which("npm")
    assert npm, "Node and its npm are needed: install Node 20 or newer"
    stamp, lock = FOLDER / "installed", (SOURCES / "package-lock.json").read_text()
    if not stamp.exists() or stamp.read_text() != lock:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(SOURCES / name, FOLDER / name)
        install = [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=FOLDER, check=True, timeout=INSTALL_LIMIT_S)
        stamp.write_text(lock)
    modules = FOLDER / "node_modules"
    environment = {**os.environ, "PATH": f"{modules / 'node' / 'bin'}:{os.environ['PATH']}", "HOME": str(FOLDER)}

    def run(*words: str) -> dict[str, Any]:
        command = [str(modules / ".bin" / "mcp-inspector"), "--cli", *words]
        done = subprocess.run(
            command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=CALL_LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    return run


@pytest.fixture
def readme() -> tuple[str, str]:
    """The file name and the source of the README's server."""
    text = (ROOT / "README.md").read_text()
    source = re.search(r"```python\n(from mcpace import MCPServer\n.*?)```", text, re.DOTALL)
    name = re.search(r"^\$ mcpace serve (\S+\.py)", text, re.MULTILINE)
    assert source and name
    return name[1], source[1]


@pytest.mark.network
@pytest.mark.parametrize("words", [(), ("--workers", "2"), ("--json-response", "--stateless")])
def test_the_first_server_works_with_inspector(
    words: tuple[str, ...], inspect: Inspect, readme: tuple[str, str], tmp_path: Path
) -> None:
    name, source = readme
    with serving(tmp_path, name, "--port", "0", *words, source=source, name=name) as served:
        served.ready()
        check(inspect, f"http://127.0.0.1:{served.port}/mcp", "--transport", "http")


@pytest.mark.network
def test_the_first_server_works_with_inspector_over_stdio(
    inspect: Inspect, readme: tuple[str, str], tmp_path: Path
) -> None:
    name, source = readme
    (tmp_path / name).write_text(source)
    # As a script it runs itself.
    check(inspect, sys.executable, str(tmp_path / name))


def check(inspect: Inspect, *target: str) -> None:
    """What the README's server has."""
    listed = inspect(*target, "--method", "tools/list")["tools"]
    [add] = [tool for tool in listed if tool["name"] == "add"]
    assert set(add["inputSchema"]["properties"]) == {"a", "b"}
    words = ("--tool-name", "add", "--tool-arg", "a=2", "b=3")
    called = inspect(*target, "--method", "tools/call", *words)
    assert called["content"] == [{"type": "text", "text": "5"}]
    assert called["structuredContent"] == {"result": 5}
