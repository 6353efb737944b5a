"""The generators as commands, with parsers of their output. All make one kind of call over kept-alive connections.

wrk and oha look at the status and nothing else; k6 runs a script that reads the reply's text; mcpace parses each reply,
matches its id and looks for errors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "bench-load"
ENGINE = HERE / "engine.py"

K6, OHA = "1.8.1", "1.16.0"
CONNECTIONS = 50
REVISION = "2025-06-18"
BODY = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}'
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": REVISION,
}
LIMIT_S = 60.0
"""Time limit of a run, in addition to its length."""


class Missing(Exception):
    """A generator is missing; the message says how to install it."""


@dataclass(frozen=True)
class Told:
    """One run of a generator."""

    rps: float
    """Answered calls a second, as the generator counts them."""
    cpu_s: float
    """User and system time of the whole process."""
    requests: int
    p50_s: float | None = None
    peak_rss_bytes: int = 0

    @property
    def cpu_us_a_request(self) -> float:
        """Microseconds."""
        return self.cpu_s / self.requests * 1e6


@dataclass(frozen=True)
class Generator:
    """A load generator."""

    name: str
    command: Callable[[str, float, Path], tuple[list[str], str | None]]
    """Returns the command and its standard input for a URL, a duration in seconds and a folder for scripts."""
    read: Callable[[str, float], tuple[int, float, float | None]]
    """Returns requests, seconds and p50 for the output and the length of a run."""

    def run(self, url: str, seconds: float, core: int, folder: Path) -> Told:
        """Runs the generator on one core. Refuses a run with failed calls, whose figures would be misleading."""
        command, stdin = self.command(url, seconds, folder)
        output = folder / f"{self.name}.out"
        with output.open("w") as out, output.with_suffix(".err").open("w") as err:
            child = subprocess.Popen(
                ["taskset", "--cpu-list", str(core), *command],
                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
            try:
                if child.stdin is not None:
                    child.stdin.write(stdin or "")
                    child.stdin.close()
                usage = waited(child, seconds + LIMIT_S)
            finally:
                if child.returncode is None:
                    os.killpg(child.pid, 9)
        if child.returncode:
            raise RuntimeError(
                f"{self.name} ended with {child.returncode}: {output.with_suffix('.err').read_text()[-500:]}"
            )
        requests, lasted_s, p50_s = self.read(output.read_text(), seconds)
        if not requests:
            raise RuntimeError(f"{self.name} made no request: {output.read_text()[-500:]}")
        return Told(
            rps=requests / lasted_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            requests=requests,
            p50_s=p50_s,
            peak_rss_bytes=usage.ru_maxrss * 1024,
        )


def waited(child: subprocess.Popen[str], limit_s: float) -> Any:
    """A child's resource usage at its end, which Popen itself discards."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        time.sleep(0.02)
    raise RuntimeError(f"{child.args} did not end within {limit_s:g} s")


def plan(url: str, seconds: float, **changes: Any) -> dict[str, Any]:
    """The load as a plan of the engine."""
    call = {"name": "echo", "kind": "call", "tool": "echo", "arguments": {"text": "hi"}, "weight": 1.0}
    return {
        "target": {"kind": "http", "url": url, "headers": []},
        "revision": REVISION,
        "session": "none",
        "model": {"kind": "closed", "vus": CONNECTIONS},
        "duration_s": seconds,
        "warm_up_s": 0.0,
        "operations": [call],
        "timeout_s": 10.0,
        "drain_s": 2.0,
        # The target answers every call with the same bytes.
        "fixed_id": 1,
    } | changes


def _mcpace(url: str, seconds: float, _: Path) -> tuple[list[str], str]:
    return [sys.executable, str(ENGINE)], json.dumps(plan(url, seconds))


def _mcpace_read(text: str, _: float) -> tuple[int, float, float]:
    outcome = json.loads(text)
    calls = next(one for one in outcome["operations"] if one["kind"] == "call")
    if outcome["ended"] != "done" or calls["ok"] != calls["count"]:
        raise RuntimeError(f"mcpace: {outcome['ended']}, {calls['errors']}, {calls['first_error']}")
    return calls["ok"], outcome["measured_s"], calls["service"]["p50_s"]


def _wrk(url: str, seconds: float, folder: Path) -> tuple[list[str], None]:
    fields = "\n".join(f"wrk.headers[{name!r}] = {value!r}" for name, value in HEADERS.items())
    script = folder / "wrk.lua"
    script.write_text(f"""
wrk.method = "POST"
wrk.body = [==[{BODY}]==]
{fields}

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{{"requests":%d,"duration_us":%d,"failed":%d,"p50_us":%d}}\\n',
    summary.requests, summary.duration, failed, latency:percentile(50)))
end
""")
    return ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "10s", "-s", str(script), url], None


def _wrk_read(text: str, _: float) -> tuple[int, float, float]:
    said = json.loads(next(line for line in text.splitlines() if line.startswith('{"requests"')))
    if said["failed"]:
        raise RuntimeError(f"wrk: {said['failed']} calls failed")
    return said["requests"], said["duration_us"] / 1e6, said["p50_us"] / 1e6


def _oha(url: str, seconds: float, _: Path) -> tuple[list[str], None]:
    headers = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]
    command = [str(BUILT / "bin" / "oha"), "-z", f"{seconds:g}s", "-c", str(CONNECTIONS), "-m", "POST", "-d", BODY]
    return [*command, *headers, "--no-tui", "--output-format", "json", url], None


def _oha_read(text: str, _: float) -> tuple[int, float, float]:
    said = json.loads(text)
    answered = said["statusCodeDistribution"].get("200", 0)
    # The calls in progress at the end of the run count as aborted, and no others.
    others = {reason: count for reason, count in said["errorDistribution"].items() if "deadline" not in reason}
    if others or set(said["statusCodeDistribution"]) != {"200"}:
        raise RuntimeError(f"oha: {said['statusCodeDistribution']} {others}")
    return answered, said["summary"]["total"], said["latencyPercentiles"]["p50"]


def _k6(url: str, seconds: float, folder: Path) -> tuple[list[str], None]:
    script, summary = folder / "k6.js", folder / "k6.json"
    script.write_text(f"""
import http from "k6/http";
import {{ check }} from "k6";
export const options = {{ vus: {CONNECTIONS}, duration: "{seconds:g}s", discardResponseBodies: false }};
const body = {json.dumps(BODY)};
const params = {{ headers: {json.dumps(HEADERS)} }};
export default function () {{
  const reply = http.post({json.dumps(url)}, body, params);
  check(reply, {{ answered: (r) => r.json("result.content.0.text") === "hi" }});
}}
export function handleSummary(data) {{ return {{ {json.dumps(str(summary))}: JSON.stringify(data) }}; }}
""")
    command = [str(BUILT / "bin" / "k6"), "run", "--quiet", "--no-usage-report", str(script)]
    return ["sh", "-c", '"$@" >&2 && cat "$0"', str(summary), *command], None


def _k6_read(text: str, _: float) -> tuple[int, float, float]:
    said = json.loads(text)
    metrics = said["metrics"]
    if metrics["checks"]["values"]["fails"] or metrics["http_req_failed"]["values"]["rate"]:
        raise RuntimeError("k6: calls failed")
    requests = int(metrics["http_reqs"]["values"]["count"])
    return requests, said["state"]["testRunDurationMs"] / 1e3, metrics["http_req_duration"]["values"]["med"] / 1e3


MCPACE = Generator("mcpace", _mcpace, _mcpace_read)
GENERATORS = (
    MCPACE,
    Generator("wrk", _wrk, _wrk_read),
    Generator("oha", _oha, _oha_read),
    Generator("k6", _k6, _k6_read),
)


def build(names: set[str]) -> None:
    """Installs the missing ones of the chosen generators, pinned, into a folder of this benchmark."""
    if "oha" in names and not (BUILT / "bin" / "oha").exists():
        _install("cargo", "install", "oha", "--version", OHA, "--locked", "--quiet", "--root", str(BUILT))
    if "k6" in names and not (BUILT / "bin" / "k6").exists():
        _install("go", "install", f"go.k6.io/k6@v{K6}", GOBIN=str(BUILT / "bin"))


def _install(*command: str, **variables: str) -> None:
    try:
        subprocess.run(command, env=os.environ | variables, timeout=3600, check=True)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is missing; leave its generator out with --only") from None


def versions() -> dict[str, str]:
    """Versions of the compared generators."""
    from importlib.metadata import version

    said = subprocess.run(["wrk", "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    found = re.search(r"wrk (\S+)", said)
    return {"mcpace": version("mcpace"), "wrk": found[1] if found else "unknown", "oha": OHA, "k6": K6}
