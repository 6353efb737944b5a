"""Compares the load engine with wrk, oha and k6: 50 kept-alive connections, one core each for generator and target.

The target is bare hyper that answers every request with the same bytes (`crates/serve/examples/floor.rs`). Generators
take turns, round after round, so that the machine's drift hits all alike; figures are medians over rounds, ratios are
taken within rounds. A run of everything also writes `latest.json` and the table of README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import generators
import table
from generators import ENGINE, GENERATORS, HERE, MCPACE, ROOT, Generator, Missing, Told

TARGET_CORE, GENERATOR_CORE = 0, 1
SERVERS = ROOT / "target" / "bench-serve" / "mcpace"
"""Folder of the programs, shared with benches/serve."""
OPEN_RPS = 20_000
USERS = 10_000
STARTS = 7
LISTEN_LIMIT_S = 20
TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = [one.name for one in GENERATORS]
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help=f"of {', '.join(names)}; writes no files"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    if unknown := set(options.only) - set(names):
        sys.exit(f"no such generator: {', '.join(sorted(unknown))}")
    # After a signal, the `with` blocks below still end all started processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        document = measure([one for one in GENERATORS if not options.only or one.name in options.only], options)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    text = table.markdown(document)
    print(text)
    if not options.only:
        (HERE / "latest.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        readme = HERE / "README.md"
        readme.write_text(TABLE.sub(lambda found: found[1] + text + found[2], readme.read_text()))
    return 0


def measure(chosen: list[Generator], options: argparse.Namespace) -> dict[str, Any]:
    """Builds, starts and measures."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Missing("this takes two cores, one for the generator and one for the target")
    generators.build({one.name for one in chosen})
    if any(one.name == "wrk" for one in chosen) and shutil.which("wrk") is None:
        raise Missing("wrk is missing: apt-get install wrk")
    if subprocess.run([sys.executable, "-c", "from mcpace import _core; raise SystemExit(_core.DEBUG)"]).returncode:
        raise Missing("mcpace's compiled part is a debug build: rm .venv/.built; make build")
    command = ("cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(SERVERS))
    for crate, examples in (("mcpace-serve", ("floor", "echo")), ("mcpace-load", ("scripted",))):
        named = [part for example in examples for part in ("--example", example)]
        subprocess.run([*command, "-p", crate, *named], cwd=ROOT, check=True)
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        floor, events = (stack.enter_context(target("floor", mode)) for mode in ("json", "sse"))
        cases = [(one.name, one, floor) for one in chosen]
        if MCPACE in chosen:
            cases.append(("mcpace-sse", MCPACE, events))
        rounds: dict[str, list[Told]] = {name: [] for name, _, _ in cases}
        for number in range(options.rounds + 1):
            for name, generator, url in cases:
                told = generator.run(url, options.seconds if number else 1, GENERATOR_CORE, folder)
                if number:
                    rounds[name].append(told)
                    print(f"round {number}: {name}: {told.rps:,.0f} requests/s", file=sys.stderr)
        more = {}
        if MCPACE in chosen:
            more = {
                "open": open_loop(floor, options.seconds, folder),
                "known": known_answer(options.seconds, folder),
                "users_peak_rss_bytes": users(stack, folder),
                "first_request_s": first_request(),
            }
    return {
        "rows": [table.row(name, told) for name, told in rounds.items()],
        "more": more,
        "checks": table.checks(rounds, more),
        "versions": generators.versions(),
        "conditions": {
            "connections": generators.CONNECTIONS,
            "rounds": options.rounds,
            "seconds": options.seconds,
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "load_average_before": load_before,
            "measured_at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        },
    }


def free_address() -> str:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def target(example: str, *arguments: str) -> Iterator[str]:
    """Runs a server on its core and yields its URL."""
    address = free_address()
    program = str(SERVERS / "release" / "examples" / example)
    command = ["taskset", "--cpu-list", str(TARGET_CORE), program, address, *arguments]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until_it_listens(child, address)
        yield f"http://{address}/mcp"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def wait_until_it_listens(child: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    limit = time.monotonic() + LISTEN_LIMIT_S
    while time.monotonic() < limit:
        if child.poll() is not None:
            raise RuntimeError(f"{child.args} ended with {child.returncode} before it listened")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"{child.args} did not listen within {LISTEN_LIMIT_S} s")


def engine(plan: dict[str, Any], folder: Path) -> tuple[dict[str, Any], Told]:
    """One run of the engine by a plan, with the complete outcome."""
    outcome: list[dict[str, Any]] = []

    def read(text: str, _: float) -> tuple[int, float, float]:
        outcome.append(json.loads(text))
        return sum(one["ok"] for one in outcome[0]["operations"]), outcome[0]["measured_s"], 0.0

    command = [sys.executable, str(ENGINE)]
    own = Generator("engine", lambda *_: (command, json.dumps(plan)), read)
    told = own.run("", plan["duration_s"], GENERATOR_CORE, folder)
    return outcome[0], told


def open_loop(url: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Punctuality of calls at a rate that the target can't slow down."""
    model = {"kind": "open", "rate": OPEN_RPS, "arrivals": "constant", "max_in_flight": 1000}
    outcome, told = engine(generators.plan(url, seconds, model=model, cores=[GENERATOR_CORE]), folder)
    call = next(one for one in outcome["operations"] if one["kind"] == "call")
    return {
        "rate": OPEN_RPS,
        "rps": told.rps,
        "intended": outcome["intended"],
        "begun": outcome["begun"],
        "late": outcome["late"],
        "latency_p50_s": call["latency"]["p50_s"],
        "service_p50_s": call["service"]["p50_s"],
        "latency_p99_s": call["latency"]["p99_s"],
    }


def known_answer(seconds: float, folder: Path) -> dict[str, Any]:
    """Latencies that are known from outside: from when each call was due, by the plan and the run's start, until the
    reply was in the engine's socket, which over loopback it is when the target's write returns. Beside it, the same
    until the write began: what lies between is the kernel's."""
    address, program = free_address(), str(SERVERS / "release" / "examples" / "scripted")
    command = ["taskset", "--cpu-list", str(TARGET_CORE), program, address]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        wait_until_it_listens(child, address)
        call = {"name": "scripted", "kind": "call", "tool": "echo", "arguments": {"n": "{{counter}}"}}
        model = {"kind": "open", "rate": OPEN_RPS, "arrivals": "constant", "max_in_flight": 5000}
        # Calls are numbered when they are sent. In the warm-up they may overtake each other while connecting.
        changes = {"model": model, "cores": [GENERATOR_CORE], "operations": [call], "fixed_id": None, "warm_up_s": 1.0}
        outcome, _ = engine(generators.plan(f"http://{address}/mcp", seconds, **changes), folder)
        written, _ = child.communicate(timeout=LISTEN_LIMIT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    [told] = [one for one in outcome["operations"] if one["kind"] == "call"]
    if not told["ok"] == told["count"] == outcome["intended"]:
        raise RuntimeError(f"{outcome['intended']} calls were due, {told['count']} ended, {told['ok']} well")
    # Some calls of the warm-up may never have started. Counting from the end assigns each measured call its due time.
    answered = sorted(json.loads(written))[-told["ok"] :]
    due_s = (outcome["started_ns"] / 1e9 + 1.0 + place / OPEN_RPS for place in range(len(answered)))
    ways = [(before / 1e9 - due, after / 1e9 - due) for (_, before, after), due in zip(answered, due_s, strict=True)]
    handed_s, true_s = (sorted(one) for one in zip(*ways, strict=True))
    found: dict[str, Any] = {"rate": OPEN_RPS, "calls": len(true_s)}
    for name, share in (("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99), ("p999_s", 0.999)):
        place = math.ceil(share * len(true_s)) - 1
        found[name] = {"true": true_s[place], "handed_over": handed_s[place], "told": told["latency"][name]}
    return found


def users(stack: ExitStack, folder: Path) -> int:
    """Peak memory of the generator with many users, each with its own session on a real server."""
    url = stack.enter_context(target("echo", "json", "stateful"))
    model = {"kind": "closed", "vus": USERS}
    plan = generators.plan(url, 8, model=model, session="user", think_s=2.0, fixed_id=None)
    outcome, told = engine(plan, folder)
    failed = {one["name"]: one["errors"] for one in outcome["operations"] if one["ok"] != one["count"]}
    opened = outcome["connections"]["opened"]
    if failed or opened < USERS:
        raise RuntimeError(f"{USERS} users: {opened} connections, {failed}")
    return told.peak_rss_bytes


def first_request() -> list[float]:
    """Time from the start of `mcpace load` to its first bytes at the target, without the first start with cold
    caches."""
    taken = []
    for number in range(STARTS + 1):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(LISTEN_LIMIT_S)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            begun = time.perf_counter()
            command = [sys.executable, "-m", "mcpace", "load", url]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(LISTEN_LIMIT_S)
                    connection.recv(1)
                    if number:
                        taken.append(time.perf_counter() - begun)
            finally:
                child.kill()
                child.wait()
    return taken


if __name__ == "__main__":
    sys.exit(main())
