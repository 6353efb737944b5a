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


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rates: dict[str, list[float]] = {"local": [], "ssh": [], "ray": []}
    with tempfile.TemporaryDirectory() as name, ray_cluster(processors=2) as cluster:
        folder = Path(name)
        command = shlex.join(["env", f"PYTHONPATH={ROOT / 'python'}", str(cluster.python), "-m", "mcpace"])
        places = {
            "local": ["--workers", "local:1"],
            "ssh": ["--workers", f"ssh:{HOST}", "--worker-command", command],
            "ray": ["--workers", f"ray:1@{cluster.address}"],
        }
        with serving(folder, "server.py", "--port", "0", source=SERVER) as served, ssh_server(folder) as sshd:
            served.ready()
            url = f"http://127.0.0.1:{served.port}/mcp"
            words = [
                "load",
                url,
                "--vus",
                "20",
                "--duration",
                "3s",
                "--tool",
                "echo",
                "--args",
                '{"text": "hi"}',
                "--json",
            ]
            for number in range(rounds):
                # Forth and back, so that a drift of the machine affects all alike.
                for kind in list(places)[:: 1 if number % 2 else -1]:
                    rates[kind].append(
                        calls_a_second([str(cluster.python), "-m", "mcpace", *words, *places[kind]], sshd.environment)
                    )
                print({kind: round(values[-1]) for kind, values in rates.items()}, flush=True)
    for kind in ("ssh", "ray"):
        ratios = sorted(one / other for one, other in zip(rates[kind], rates["local"], strict=True))
        print(f"{kind} / local: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}")
    ratios = sorted(one / other for one, other in zip(rates["ray"], rates["ssh"], strict=True))
    print(f"ray / ssh: median {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}")


def calls_a_second(command: list[str], environment: dict[str, str]) -> float:
    """Runs one load. Returns the rate of good calls."""
    done = subprocess.run(
        command, env={**os.environ, **variables(), **environment}, capture_output=True, timeout=LIMIT_S, check=True
    )
    [case] = json.loads(done.stdout)["cases"]
    assert [one["state"] for one in case["load"]["workers"]] == ["done"]
    return float(case["by_tool"]["echo"]["ok"] / case["load"]["measured_s"])


if __name__ == "__main__":
    main()
