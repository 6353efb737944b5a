"""The generators: how each is asked for the same load, and what it says came of it."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "target" / "tools" / "bin"
ENGINE = ROOT / "target" / "release" / "examples" / "load"
CONNECTIONS = 50
OHA = "1.16.0"
K6 = "v1.8.1"

HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}
BODY = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}'


class Missing(Exception):
    """Something is needed that isn't there; says what to do."""


@dataclass(frozen=True)
class Figures:
    """What came of one measurement."""

    rps: float
    requests: int
    cpu_s: float
    p50_s: float

    @property
    def cpu_us(self) -> float:
        """The generator's processor time a request, its start included."""
        return self.cpu_s * 1e6 / self.requests


@dataclass(frozen=True)
class Case:
    """A generator and a target."""

    name: str
    checks: str
    run: Callable[[int], Figures]


def cases(plain: int, events: int, core: int, folder: Path) -> list[Case]:
    """All of them, against the targets at these ports, pinned to that core."""
    pin = ("taskset", "-c", str(core))
    wrk = found("wrk", "apt-get install wrk")
    oha = found("oha", f"cargo install oha --version {OHA} --locked --root target/tools")
    k6 = found("k6", f"GOBIN=$PWD/target/tools/bin go install go.k6.io/k6@{K6}")
    lua, script, out = folder / "wrk.lua", folder / "k6.js", folder / "k6.json"
    lua.write_text(WRK)
    script.write_text(K6_SCRIPT)
    url = f"http://127.0.0.1:{plain}/mcp"
    headers = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]

    def run_wrk(seconds: int) -> Figures:
        said, cpu_s = run((*pin, wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(lua), url))
        figures = re.search(r"^FIGURES (\d+) (\d+) (\d+) (\d+)$", said, re.MULTILINE)
        if figures is None or int(figures[3]):
            raise RuntimeError(f"wrk: {said}")
        requests, micros, _, p50 = (int(figure) for figure in figures.groups())
        return Figures(requests / micros * 1e6, requests, cpu_s, p50 / 1e6)

    def run_oha(seconds: int) -> Figures:
        load = (
            "--no-tui",
            "--output-format",
            "json",
            "-z",
            f"{seconds}s",
            "-c",
            str(CONNECTIONS),
            "-m",
            "POST",
            "-d",
            BODY,
        )
        said, cpu_s = run((*pin, oha, *load, *headers, url))
        found = json.loads(said)
        requests = sum(found["statusCodeDistribution"].values())
        return Figures(found["summary"]["requestsPerSec"], requests, cpu_s, found["latencyPercentiles"]["p50"])

    def run_k6(seconds: int) -> Figures:
        load = ("run", "--quiet", "--no-usage-report", "--vus", str(CONNECTIONS), "--duration", f"{seconds}s")
        _, cpu_s = run((*pin, k6, *load, "--summary-export", str(out), "-e", f"URL={url}", str(script)))
        metrics = json.loads(out.read_text())["metrics"]
        if metrics["checks"]["fails"]:
            raise RuntimeError(f"k6: {metrics['checks']['fails']} calls failed")
        done = metrics["http_reqs"]
        return Figures(done["rate"], done["count"], cpu_s, metrics["http_req_duration"]["med"] / 1e3)

    return [
        Case("mcpace", "all", lambda seconds: engine(pin, plain, seconds)),
        Case("wrk", "status", run_wrk),
        Case("oha", "status", run_oha),
        Case("k6", "JSON path", run_k6),
        Case("mcpace, event streams", "all", lambda seconds: engine(pin, events, seconds)),
    ]


def extremes(port: int, core: int, users: int) -> dict[str, Any]:
    """Memory of many users, and how soon the first reply is there."""
    pin = ("taskset", "-c", str(core))
    # A thinking user holds its connection and its session all the time.
    many = plan(port, 10) | {"model": {"kind": "closed", "vus": users}, "think_s": 2.0, "fixed_id": 1}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with subprocess.Popen(
        (str(ENGINE),), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps(many).encode())
        child.stdin.close()
        outcome = json.loads(child.stdout.read())
        # Popen would take the child's figures away.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    if outcome["connections"]["opened"] < users:
        raise RuntimeError(f"only {outcome['connections']['opened']} of {users} users came in; before: {before}")
    begun = time.monotonic()
    engine(pin, port, 60, max_calls=1, vus=1)
    return {"users": users, "users_rss_bytes": usage.ru_maxrss * 1024, "first_reply_s": time.monotonic() - begun}


def engine(
    pin: tuple[str, ...], port: int, seconds: int, max_calls: int | None = None, vus: int = CONNECTIONS
) -> Figures:
    """The engine, as a process of its own. The floor answers all with one id, so all requests have it."""
    wanted = plan(port, seconds) | {"max_calls": max_calls, "model": {"kind": "closed", "vus": vus}}
    said, cpu_s = run((*pin, str(ENGINE)), json.dumps(wanted))
    outcome = json.loads(said)
    echo = outcome["operations"][0]
    if echo["count"] != echo["ok"] or not echo["ok"]:
        raise RuntimeError(f"mcpace: {echo['count'] - echo['ok']} calls failed: {echo['first_error']}")
    return Figures(echo["ok"] / outcome["measured_s"], echo["ok"], cpu_s, echo["latency"]["p50_s"])


def plan(port: int, seconds: int) -> dict[str, Any]:
    """One call, closed loop."""
    return {
        "target": {"kind": "http", "url": f"http://127.0.0.1:{port}/mcp"},
        "revision": "2025-06-18",
        "session": "none",
        "model": {"kind": "closed", "vus": CONNECTIONS},
        "duration_s": seconds,
        "operations": [{"name": "echo", "kind": "call", "tool": "echo", "arguments": {"text": "hi"}}],
        "timeout_s": 30,
        "drain_s": 5,
        "fixed_id": 1,
    }


def run(command: tuple[str, ...], text: str = "") -> tuple[str, float]:
    """Runs a generator to its end: what it printed, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=180)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def found(name: str, how: str) -> str:
    """Where a generator is."""
    path = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    if path is None:
        raise Missing(f"{name} is missing: {how}")
    return path


WRK = f"""
wrk.method = "POST"
wrk.body = [==[{BODY}]==]
{chr(10).join(f"wrk.headers[{name!r}] = {value!r}" for name, value in HEADERS.items())}

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("FIGURES %d %d %d %d\\n", summary.requests, summary.duration, failed, latency:percentile(50)))
end
"""

K6_SCRIPT = f"""
import http from "k6/http";
import {{ check }} from "k6";

const body = {json.dumps(BODY)};
const params = {{ headers: {json.dumps(HEADERS)} }};

export default function () {{
  const reply = http.post(__ENV.URL, body, params);
  check(reply, {{ good: (r) => r.status === 200 && r.json("id") === 1 && !r.json("result.isError") }});
}}
"""
