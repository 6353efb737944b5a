"""Answers of ``--inside`` about one tool in servers of each Python SDK, over HTTP and stdio, and under load."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mcpace
from proof.test_findings_inside import dependency  # noqa: F401 - a fixture
from support import ports
from support.commands import run
from support.echo_server import wait_for_port
from support.finding_scenes import patient
from support.release_proofs import interpreter

TOOL = """
import asyncio, sys
try:
    import httpx
except ImportError:
    import httpx2 as httpx  # the dependency of the official SDK 2.x
base, way, port = sys.argv[1:]

async def forecast() -> str:
    for kind in ("geo", "now", "daily"):
        async with httpx.AsyncClient() as client:
            await client.get(f"{base}/{kind}")
    return "ok"
"""
SERVERS = {
    "python@1.30.0": """
from mcp.server.fastmcp import FastMCP
mcp = FastMCP("weather", port=int(port))
mcp.tool()(forecast)
mcp.run("stdio" if way == "stdio" else "streamable-http")
""",
    "python@2.3.0": """
from mcp.server import MCPServer
mcp = MCPServer("weather")
mcp.tool()(forecast)
mcp.run("stdio") if way == "stdio" else mcp.run("streamable-http", port=int(port))
""",
    "fastmcp@4.1.3": """
from fastmcp import FastMCP
mcp = FastMCP("weather")
mcp.tool()(forecast)
mcp.run() if way == "stdio" else mcp.run(transport="http", port=int(port))
""",
    "mcpace": f"""
sys.path.insert(0, {str(Path(mcpace.__file__).parents[1])!r})
from mcpace import MCPServer
mcp = MCPServer("weather")
mcp.tool()(forecast)
mcp.run("stdio") if way == "stdio" else mcp.run("http", port=int(port))
""",
}
SDK = pytest.mark.parametrize("sdk", list(SERVERS))


def command(sdk: str, way: str, base: str, folder: Path) -> str:
    program = folder / "weather.py"
    program.write_text(TOOL + SERVERS[sdk])
    # mcpace's own environment has no httpx.
    python = interpreter("python@1.30.0" if sdk == "mcpace" else sdk)
    return shlex.join([python, str(program), base, way, str(ports.free())])


def inside_case(*words: object, folder: Path) -> dict[str, Any]:
    done = run(*words, "--tool", "forecast", "--json", folder=folder)
    assert done.code == 0, done.stderr
    [case] = [case for case in json.loads(done.stdout)["cases"] if case["operation"] == "call"]
    return dict(case)


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("way", ["stdio", "http"])
@SDK
@patient
def test_the_cause_is_named_in_servers_of_each_sdk(sdk: str, way: str, dependency: str, tmp_path: Path) -> None:  # noqa: F811
    kind = "stdio" if way == "stdio" else "serve"
    case = inside_case("measure", f"{kind}:{command(sdk, way, dependency, tmp_path)}", "--inside", folder=tmp_path)
    inside = case["inside"]
    assert inside["missing"] == []
    found = {finding["code"]: finding["context"] for finding in case["findings"]}
    assert found["client-built-per-call"]["file"].endswith("weather.py"), found
    assert {row["name"]: row["requests"] for row in inside["dependencies"]} == {dependency.removeprefix("http://"): 3}
    assert inside["server_s"] - inside["rest_s"] >= 0.8 * inside["server_s"], inside
    assert inside["added"]["ratio"] < 1.5


@pytest.mark.proof
@pytest.mark.network
@patient
def test_explain_shows_the_inside_beside_true_times(dependency: str, tmp_path: Path) -> None:  # noqa: F811
    place = f"serve:{command('python@1.30.0', 'http', dependency, tmp_path)}"
    case = inside_case("explain", place, "--inside", "--budget", "20s", folder=tmp_path)
    assert "client-built-per-call" in {finding["code"] for finding in case["findings"]}
    assert case["inside"]["calls"] > 0


@pytest.mark.proof
@pytest.mark.network
@patient
def test_load_shows_sums_of_calls_that_overlap(dependency: str, tmp_path: Path) -> None:  # noqa: F811
    place = f"serve:{command('python@1.30.0', 'http', dependency, tmp_path)}"
    case = inside_case("load", place, "--inside", "--vus", 4, "--duration", "3s", folder=tmp_path)
    sums = case["inside_sums"]
    assert sums["missing"] == []
    assert sums["calls"] > 10
    [row] = sums["dependencies"]
    assert row["requests"] == pytest.approx(3, abs=0.5)
    assert sums["packages"][0]["package"] in ("httpx", "httpcore", "ssl"), sums["packages"]
    assert any(line["file"].endswith("weather.py") for line in sums["lines"])


@contextmanager
def running_server(words: str) -> Iterator[tuple[int, str]]:
    """A server that somebody else started: its process and its URL."""
    port = int(words.rpartition(" ")[2])
    with subprocess.Popen(shlex.split(words), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            wait_for_port(port, server)
            yield server.pid, f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()


@pytest.mark.proof
@pytest.mark.network
@patient
def test_a_process_that_runs_already_is_sampled(dependency: str, tmp_path: Path) -> None:  # noqa: F811
    with running_server(command("python@1.30.0", "http", dependency, tmp_path)) as (pid, url):
        case = inside_case("measure", url, "--pid", pid, folder=tmp_path)
    inside = case["inside"]
    assert {row["kind"] for row in inside["dependencies"]} <= {"connection"}
    [missing] = inside["missing"]
    assert "serve:" in missing and "--inside" in missing
    assert any(line["file"].endswith("weather.py") for line in inside["lines"])
    assert inside["packages"]


@pytest.mark.proof
@pytest.mark.network
@patient
def test_a_server_object_is_looked_into_in_its_own_interpreter(dependency: str, tmp_path: Path) -> None:  # noqa: F811
    program = tmp_path / "weather.py"
    own = TOOL.replace("sys.argv[1:]", f"{dependency!r}, '', '0'")
    program.write_text(own + SERVERS["python@1.30.0"].rpartition("mcp.run")[0])
    words = ("measure", f"{program}:mcp", "--python", interpreter("python@1.30.0"), "--inside")
    case = inside_case(*words, folder=tmp_path)
    assert case["inside"]["missing"] == []
    found = {finding["code"]: finding["context"] for finding in case["findings"]}
    assert found["client-built-per-call"]["file"].endswith("weather.py"), found
