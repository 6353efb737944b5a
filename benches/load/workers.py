"""Throughput of one worker at each kind of place, in turns: a process here, a process over ssh, an actor of Ray.

All workers run on this machine beside the server, so the figures are of use as ratios only. The cluster and the sshd
are those of the tests. Usage: PYTHONPATH=tests/python python benches/load/workers.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from support.ray_cluster import ray_cluster, variables
from support.serve_process import serving
from support.ssh_server import HOST, ssh_server

ROOT = Path(__file__).resolve().parents[2]

SERVER = """
    from mcpace import MCPServer

    server = MCPServer("loaded")

    @server.tool()
    def echo(text: str) -> str:
        return text
"""
LIMIT_S = 300.0


WORDS = ("--vus", "20", "--duration", "3s", "--warm-up", "0s", "--tool", "echo", "--args", '{"text": "hi"}', "--json")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name, ray_cluster(processors=2) as cluster:
        folder = Path(name)
        own = [str(cluster.python), "-m", "mcpace"]
        remote = shlex.join(["env", f"PYTHONPATH={ROOT / 'python'}", *own])
        places = {
            "local": ["--workers", "local:1"],
            "ssh": ["--workers", f"ssh:{HOST}", "--worker-command", remote],
            "ray": ["--workers", f"ray:1@{cluster.address}"],
        }
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in places}
        with serving(folder, "server.py", "--port", "0", source=SERVER) as served, ssh_server(folder) as sshd:
            served.ready()
            url = f"http://127.0.0.1:{served.port}/mcp"
            for number in range(rounds):
                # Forth and back, so that a drift of the machine affects all alike.
                for kind in list(places)[:: 1 if number % 2 else -1]:
                    found[kind].append(measure_load([*own, "load", url, *WORDS, *places[kind]], sshd.environment))
                print({kind: [round(one) for one in values[-1]] for kind, values in found.items()}, flush=True)
    for column, what in enumerate(("calls a second", "calls in a second of the engine's processor time")):
        for kind, base in (("ssh", "local"), ("ray", "local"), ("ray", "ssh")):
            pairs = zip(found[kind], found[base], strict=True)
            ratios = sorted(one[column] / other[column] for one, other in pairs)
            spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
            print(f"{what}, {kind} / {base}: median {statistics.median(ratios):.3f}, {spread}")


def measure_load(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Runs one load. Returns the good calls in a second, and in a second of the engine's processor time."""
    done = subprocess.run(
        command, env={**os.environ, **variables(), **environment}, capture_output=True, timeout=LIMIT_S, check=True
    )
    [case] = json.loads(done.stdout)["cases"]
    assert [one["state"] for one in case["load"]["workers"]] == ["done"]
    calls = case["by_tool"]["echo"]["ok"]
    return calls / case["load"]["measured_s"], calls / case["load"]["engine"]["cpu_s"]


if __name__ == "__main__":
    main()
