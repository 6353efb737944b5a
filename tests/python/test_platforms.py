"""mcpace on macOS and Windows, as far as Linux can show it: what is imported, and which names are used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEMS = ("win32", "darwin")
LIMIT_S = 300


def run_as(system: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of mcpace, or only the imports, as on another system."""
    path = os.pathsep.join(map(str, (ROOT / "tests" / "python", ROOT / "python")))
    return subprocess.run(
        [sys.executable, "-m", "support.other_system", system, *map(str, arguments)],
        cwd=cwd, env={**os.environ, "PYTHONPATH": path, "MCPACE_CACHE": str(cwd / "cache"), "XDG_STATE_HOME": str(cwd)},
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_is_imported_without_what_the_system_lacks(system: str, tmp_path: Path) -> None:
    done = run_as(system, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 400


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_reported_on_every_system(system: str, tmp_path: Path) -> None:
    run = ROOT / "tests" / "fixtures" / "runs" / "clients.json"
    page = tmp_path / "report.html"
    done = run_as(system, "report", run, "--html", page, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 10_000
    assert json.loads(run.read_text())["kind"] in ("clients", "measure")


def test_what_needs_linux_says_so_elsewhere(tmp_path: Path) -> None:
    compared = run_as("darwin", "servers", "mcpace:json", cwd=tmp_path)
    assert (compared.returncode, "on Linux only, and this is darwin" in compared.stderr) == (3, True), compared.stderr
    looked = run_as("darwin", "measure", "http://127.0.0.1:9/mcp", "--pid", str(os.getpid()), cwd=tmp_path)
    assert (looked.returncode, "on Linux only, and this is darwin" in looked.stderr) == (3, True), looked.stderr


def test_several_workers_are_refused_on_windows(tmp_path: Path) -> None:
    (tmp_path / "calculator.py").write_text("from mcpace import MCPServer\n\nmcp = MCPServer('calculator')\n")
    done = run_as("win32", "serve", "calculator.py", "--workers", "2", "--port", "0", cwd=tmp_path)
    assert (done.returncode, "Windows can't share a port" in done.stderr) == (2, True), done.stderr


def test_a_configuration_is_wrapped_and_restored_without_what_the_system_lacks(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"clock": {"command": "clock"}}}')
    before = file.read_bytes()
    for command in ("wrap", "unwrap"):
        done = run_as("win32", command, file, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert file.read_bytes() == before


def test_empty_caches_are_refused_on_windows(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"clock": {"command": "clock"}}}')
    done = run_as("win32", "check", "mcp.json", "--cold", cwd=tmp_path)
    assert (done.returncode, "--cold needs Linux or macOS" in done.stderr) == (3, True), done.stderr


def test_several_workers_are_refused_on_macos(tmp_path: Path) -> None:
    (tmp_path / "calculator.py").write_text("from mcpace import MCPServer\n\nmcp = MCPServer('calculator')\n")
    done = run_as("darwin", "serve", "calculator.py", "--workers", "2", "--port", "0", cwd=tmp_path)
    assert (done.returncode, "macOS gives all connections" in done.stderr) == (2, True), done.stderr
