"""Figures of the Python interface beside the table: blocking tools, structured results, the client, start, workers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import call
import figures
import load
from process import Process
from subjects import (
    BUILT,
    LEGACY,
    SERVERS,
    build_mcpace,
    build_mcpace_adopted,
    build_python_mcp,
    serve,
    stateful_echo,
)

BUILDS = [build_mcpace, build_mcpace_adopted, build_python_mcp]
OWN = str(SERVERS / "mcpace-python" / "server.py")
OFFICIAL = str(SERVERS / "python-mcp" / "server.py")
OFFICIAL_PYTHON = str(BUILT / "python-mcp" / "bin" / "python")
STARTS = 7
CALLS = 2_000
LIMIT_S = 120

Figures = dict[str, Any]


def measure(rounds: int, seconds: int) -> Figures:
    """Each figure with its rounds; those of mcpace and of the official SDK taken in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "sleeper": beside_a_sleeper(seconds, folder),
            "structured_rps": structured(rounds, seconds, folder),
            "client_p50_s": clients(rounds),
            "import_s": starts(IMPORTS, read_seconds),
            "workers_rps": workers(rounds, seconds, folder),
        }


def checks(face: Figures) -> dict[str, Any]:
    """The figures that have one to reach."""

    def at_most(value: float, to_reach: float) -> Figures:
        return figures.check(value, to_reach, at_most=True)

    return {
        "echo's p99 beside 200 callers of a 50 ms sleeper, ms": at_most(face["sleeper"]["echo_p99_s"] * 1e3, 5),
        "structured result of 10 KB ÷ python-mcp, json": figures.check(ratio(face["structured_rps"]), 25),
        "Client.call_tool p50 ÷ the official client's": at_most(ratio(face["client_p50_s"]), 1 / 8),
        "import ÷ the official SDK's": at_most(ratio(face["import_s"]), 0.25),
        "two workers ÷ one, tool that burns 200 µs": figures.check(ratio(face["workers_rps"]), 1.85),
    }


def ratio(of: dict[str, list[float]]) -> float:
    """Median over rounds of the first ÷ the second in the same round."""
    first, second = of.values()
    return median(a / b for a, b in zip(first, second, strict=True))


@contextmanager
def running(*command: str, variables: tuple[tuple[str, str], ...] = ()) -> Iterator[Process]:
    """A server that listens."""
    with Process(command, variables) as server:
        server.wait_until_it_listens()
        yield server


def own(workers: int = 1) -> tuple[str, ...]:
    """mcpace's server of plain tools."""
    return (sys.executable, *serve(f"{OWN}:sync", workers=workers))


def beside_a_sleeper(seconds: int, folder: Path) -> Figures:
    """200 callers of a tool that sleeps 50 ms, and ten of `echo` meanwhile."""
    sleeper, echo = call.Call(LEGACY, "sleep", ()), call.Call(LEGACY)
    with running(*own()) as server:
        load.measure(server.port, sleeper, 1, 8, folder)
        slept: list[load.Figures] = []
        seen = threading.Thread(
            target=lambda: slept.append(load.measure(server.port, sleeper, seconds + 1, 200, folder))
        )
        seen.start()
        answered = load.measure(server.port, echo, seconds, 10, folder)
        seen.join(LIMIT_S)
    if not slept:
        raise RuntimeError("the sleeper was not measured")
    return {
        "echo_p99_s": answered.p99_s,
        "echo_rps": answered.rps,
        "sleep_p50_s": slept[0].p50_s,
        "sleep_rps": slept[0].rps,
    }


def structured(rounds: int, seconds: int, folder: Path) -> dict[str, list[float]]:
    """Throughput of a pydantic model of 10 KB as text and as structured content."""
    of = call.Call(LEGACY, "catalogue", ())
    found: dict[str, list[float]] = {"mcpace": [], "python-mcp": []}
    with running(*own()) as mine, running(OFFICIAL_PYTHON, OFFICIAL, "{port}", "json", "stateless", "0") as theirs:
        answers = [call.once(server.port, of, "json")["result"] for server in (mine, theirs)]
        if answers[0]["structuredContent"] != answers[1]["structuredContent"]:
            raise RuntimeError("the structured results differ")
        for _ in range(rounds):
            for name, server in zip(found, (mine, theirs), strict=True):
                found[name].append(load.measure(server.port, of, seconds, 50, folder).rps)
    return found


def clients(rounds: int) -> dict[str, list[float]]:
    """Median time of one call after another of `echo` on mcpace's Rust server, through each client."""
    found: dict[str, list[float]] = {"mcpace": [], "python-mcp": []}
    programs = {"mcpace": (sys.executable, "mcpace"), "python-mcp": (OFFICIAL_PYTHON, "mcp.client")}
    with running(*stateful_echo().command) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        for _ in range(rounds):
            for name, (python, module) in programs.items():
                found[name].append(float(said(python, str(SERVERS / "clients" / "client.py"), module, url, str(CALLS))))
    return found


IMPORTS = {
    "mcpace": (sys.executable, "-c", "from mcpace import MCPServer"),
    "python-mcp": (OFFICIAL_PYTHON, "-c", "from mcp.server import MCPServer"),
}


def starts(commands: dict[str, tuple[str, ...]], time_of: Any) -> dict[str, list[float]]:
    """Seconds of each command, in turn; the first of each, which fills the file cache, left out."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(STARTS + 1):
        for name, command in commands.items():
            taken = time_of(command)
            if number:
                found[name].append(taken)
    return found


def read_seconds(command: tuple[str, ...]) -> float:
    """Time of an import, without the start of the interpreter."""
    python, flag, statement = command
    timed = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return float(said(python, flag, timed))


def workers(rounds: int, seconds: int, folder: Path) -> dict[str, list[float]]:
    """Throughput of a tool that burns 200 µs of Python."""
    of = call.Call(LEGACY, "burn", ())
    found: dict[str, list[float]] = {"two": [], "one": []}
    with running(*own(2)) as two, running(*own(1)) as one:
        for _ in range(rounds):
            for name, server in zip(found, (two, one), strict=True):
                found[name].append(load.measure(server.port, of, seconds, 50, folder).rps)
    return found


def said(*command: str) -> str:
    """The last line that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-500:]}")
    return done.stdout.strip().splitlines()[-1]
