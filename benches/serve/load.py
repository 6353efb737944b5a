"""Load by wrk: a closed loop over kept-alive connections, with the figures of a wrk script."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import call

STALL_S = (0.035, 0.060)
"""Times of calls that wait for a delayed ACK because of Nagle's algorithm: 40 ms on Linux, and the time of the call."""


@dataclass(frozen=True)
class Figures:
    """Figures of one run of wrk, with times in seconds."""

    requests: int
    duration_s: float
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float
    stalled_share: float
    """Share of calls that took 35 to 60 ms, which is meaningful only where calls are short."""

    @property
    def rps(self) -> float:
        """Answered calls a second."""
        return self.requests / self.duration_s


def measure(port: int, of: call.Call, seconds: float, connections: int, folder: Path) -> Figures:
    """Runs wrk with one thread. Refuses a run with failed calls, whose figures would be misleading."""
    script = folder / f"{abs(hash(of))}.lua"
    script.write_text(lua(of))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "--timeout", "10s", "-s", str(script)]
    url = f"http://127.0.0.1:{port}/mcp"
    done = subprocess.run([*command, url], capture_output=True, text=True, timeout=seconds + 60)
    line = next((line for line in done.stdout.splitlines() if line.startswith('{"requests"')), None)
    if line is None:
        raise RuntimeError(f"wrk: {done.stdout}{done.stderr}")
    said = json.loads(line)
    if said["failed"] or not said["requests"]:
        raise RuntimeError(f"{said['failed']} of {said['requests']} calls failed")
    return Figures(
        requests=said["requests"],
        duration_s=said["duration_us"] / 1e6,
        p50_s=said["p50_us"] / 1e6,
        p90_s=said["p90_us"] / 1e6,
        p99_s=said["p99_us"] / 1e6,
        max_s=said["max_us"] / 1e6,
        stalled_share=said["stalled"] / said["counted"],
    )


def lua(of: call.Call) -> str:
    """A wrk script that sends the request and prints a last line for programs."""
    fields = "\n".join(f"wrk.headers[{name!r}] = {value!r}" for name, value in call.headers(of).items())
    low, high = (int(bound * 1e6) for bound in STALL_S)
    return f"""
wrk.method = "POST"
wrk.body = [==[{call.body(of)}]==]
{fields}

function done(summary, latency, requests)
  local counted, stalled = 0, 0
  for i = 1, #latency do
    local value, count = latency(i)
    counted = counted + count
    if value >= {low} and value < {high} then stalled = stalled + count end
  end
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{{"requests":%d,"duration_us":%d,"failed":%d,"p50_us":%d,"p90_us":%d,"p99_us":%d,"max_us":%d,"counted":%d,"stalled":%d}}\\n',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(90), latency:percentile(99),
    latency.max, counted, stalled)) end
"""
