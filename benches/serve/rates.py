"""Calls at fixed rates that the servers can't slow down (open loop): processor time a call, and latencies.

The server has the first core and the generator, mcpace's load engine, has the second. Latency counts from the time at
which a call was due. A server that answers fewer calls than were due has no latencies, because they only grow with the
length of the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import figures
from process import Process, pinned
from subjects import ROOT, Subject, build_mcpace_python

BUILDS = [build_mcpace_python]
ENGINE = str(ROOT / "benches" / "load" / "engine.py")
SERVER_CORE, GENERATOR_CORE = 0, 1
WARM_UP_S = 0.5
KEPT_UP = 0.99
"""Share of the calls that a server has to answer in time."""
BUSY = 0.9
"""Share of time from which on the generator has no time left."""
LIMIT_S = 60
LATENCIES = ("p50_s", "p99_s", "p999_s")
LABELS = (
    "floor/json", "nginx/json", "mcpace-rust/json", "mcpace-rust/sse", "rmcp/json", "tower-mcp/json",
    "mcpace-python-sync/json", "mcpace-python-async/json", "mcpace-adopted/json", "granian/json", "robyn/json",
)  # fmt: skip
COLUMNS = (
    figures.Column("cpu_s", "CPU µs a call", 1e6),
    figures.Column("p50_s", "p50 ms", 1e3),
    figures.Column("p99_s", "p99 ms", 1e3),
    figures.Column("p999_s", "p99.9 ms", 1e3),
    figures.Column("generator", "generator busy", compared=False),
)


def measure(chosen: list[Subject], rate: int, rounds: int, seconds: float) -> list[figures.Row]:
    """A row for each server."""
    with ExitStack() as started:
        cases = []
        for subject in chosen:
            server = started.enter_context(Process(pinned(subject.command, SERVER_CORE), subject.environment))
            server.wait_until_it_listens()
            row = {"case": f"{rate:,}/s", "name": subject.title, "base": "floor, json"}
            offer(subject, server, rate, 1.0, {})
            cases.append(
                (row, lambda subject=subject, server=server, row=row: offer(subject, server, rate, seconds, row))
            )
        rows = figures.in_turn(rounds, cases)
    for row in rows:
        if "note" in row:
            row["rounds"] = {key: values for key, values in row["rounds"].items() if key not in LATENCIES}
    return rows


def offer(subject: Subject, server: Process, rate: int, seconds: float, row: figures.Row) -> dict[str, float]:
    """Offers the rate once. The row gets a note where the server or the generator can't keep up."""
    before = server.cpu_s()
    outcome = run(plan(subject, server.port, rate, seconds))
    cpu_s = server.cpu_s() - before
    calls = next(one for one in outcome["operations"] if one["kind"] == "call")
    if calls["ok"] != calls["count"]:
        raise RuntimeError(f"{subject.label}: {calls['errors']}, {calls['first_error']}")
    found = {
        "cpu_s": cpu_s / sum(second["ok"] for second in outcome["seconds"]),
        "generator": outcome["engine"]["busy"],
    }
    answered = calls["ok"] / outcome["measured_s"]
    if answered < rate * KEPT_UP:
        of = "the generator" if outcome["engine"]["busy"] > BUSY else "the server"
        row["note"] = f"{of} was the limit: {answered:,.0f}/s"
        return found
    return found | {key: calls["latency"][key] for key in LATENCIES}


def plan(subject: Subject, port: int, rate: int, seconds: float) -> dict[str, Any]:
    """The load as a plan of the engine."""
    return {
        "target": {"kind": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": []},
        "revision": subject.revisions[0],
        "accept": "sse" if subject.events_only else "both",
        "session": "none",
        "model": {"kind": "open", "rate": rate, "arrivals": "constant", "max_in_flight": 200},
        "duration_s": seconds,
        "warm_up_s": WARM_UP_S,
        "operations": [{"name": "echo", "kind": "call", "tool": "echo", "arguments": {"text": "hi"}, "weight": 1.0}],
        "timeout_s": 10.0,
        "drain_s": 2.0,
        # The floors answer every call with the same bytes.
        "fixed_id": 1,
        "cores": [GENERATOR_CORE],
    }


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """The engine's outcome."""
    command = [sys.executable, ENGINE]
    done = subprocess.run(command, input=json.dumps(plan), capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"the load engine ended with {done.returncode}: {done.stderr[-500:]}")
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def checks(rows: list[figures.Row]) -> dict[str, Any]:
    """The targets at 50,000 calls a second."""
    found = {}
    own = figures.find(rows, "50,000/s", "mcpace-rust, json")
    for key, name, to_reach in (("p999_s", "p99.9", 1.0), ("cpu_s", "CPU a call", 0.8)):
        if own and (compared := figures.ratios(own, rows, key)):
            value = figures.median(compared)
            found[f"{name} at 50,000/s, json ÷ floor"] = figures.check(value, to_reach, at_most=True)
    return found
