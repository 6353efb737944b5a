"""Compares the load engine with wrk, oha and k6: one core each, bare hyper on another, 50 connections.

The generators take turns, round after round, so that the machine's drift hits all alike; figures are medians over
rounds, ratios are taken within rounds. mcpace and k6 read each reply; wrk and oha don't. Writes `latest.json` and the
table of README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "serve"))

import generators  # noqa: E402
from process import Process, run_to_end  # noqa: E402

TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)
FLOOR = ROOT / "target" / "release" / "examples" / "floor"
USERS = 10_000


def main() -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], help="these alone; writes no files")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all generators (default: 5)")
    parser.add_argument("--seconds", type=int, default=4, help="length of each measurement (default: 4)")
    parser.add_argument("--skip-build", action="store_true", help="take what was built before")
    options = parser.parse_args()
    try:
        document = measure(options)
    except generators.Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    text = table(document)
    print(text)
    if not options.only:
        (HERE / "latest.json").write_text(json.dumps(document, indent=1) + "\n")
        readme = HERE / "README.md"
        readme.write_text(TABLE.sub(lambda found: found[1] + text + found[2], readme.read_text()))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Builds, starts the floor in both modes, lets the generators take turns."""
    if len(os.sched_getaffinity(0)) < 2:
        raise generators.Missing("two cores are needed: one for the generator, one for its target")
    target_core, own_core = sorted(os.sched_getaffinity(0))[:2]
    if not options.skip_build:
        build()
    load_before = os.getloadavg()[0]
    floor = ("taskset", "-c", str(target_core), str(FLOOR), "{address}")
    with (
        Process(floor) as plain,
        Process((*floor, "sse")) as events,
        tempfile.TemporaryDirectory() as folder,
    ):
        for server in (plain, events):
            server.wait_until_it_listens()
        cases = generators.cases(plain.port, events.port, own_core, Path(folder))
        if unknown := set(options.only) - {case.name for case in cases}:
            raise generators.Missing(f"no such generator: {', '.join(sorted(unknown))}")
        cases = [case for case in cases if not options.only or case.name in options.only]
        rounds: dict[str, list[generators.Figures]] = {case.name: [] for case in cases}
        for case in cases:
            case.run(1)
        for number in range(1, options.rounds + 1):
            for case in cases:
                figures = case.run(options.seconds)
                rounds[case.name].append(figures)
                print(f"round {number}: {case.name}: {figures.rps:,.0f} requests/s", file=sys.stderr)
        more = {} if options.only else generators.extremes(plain.port, own_core, USERS)
    rows = [row(case, rounds[case.name]) for case in cases]
    return {
        "rows": rows,
        "ratios": ratios(rounds),
        **more,
        "conditions": {
            "connections": generators.CONNECTIONS,
            "rounds": options.rounds,
            "seconds": options.seconds,
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "load_average_before": load_before,
            "load_average_after": os.getloadavg()[0],
            "measured_at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        },
    }


def build() -> None:
    """The floor and the engine."""
    for crate, example in (("mcpace-serve", "floor"), ("mcpace-load", "load")):
        run_to_end(("cargo", "build", "--release", "--locked", "--quiet", "-p", crate, "--example", example), ROOT)


def row(case: generators.Case, rounds: list[generators.Figures]) -> dict[str, Any]:
    """One generator's medians."""
    return {
        "name": case.name,
        "checks": case.checks,
        "rps": statistics.median(figures.rps for figures in rounds),
        "cpu_s": statistics.median(figures.cpu_s for figures in rounds),
        "cpu_us_per_request": statistics.median(figures.cpu_us for figures in rounds),
        "p50_s": statistics.median(figures.p50_s for figures in rounds),
        "rounds_rps": [figures.rps for figures in rounds],
    }


def ratios(rounds: dict[str, list[generators.Figures]]) -> dict[str, float]:
    """The engine against each other generator, taken within rounds."""
    own = rounds.get("mcpace", [])
    return {
        f"mcpace/{name}": statistics.median(a.rps / b.rps for a, b in zip(own, others, strict=True))
        for name, others in rounds.items()
        if own and name != "mcpace"
    }


def table(document: dict[str, Any]) -> str:
    """For people."""
    lines = [
        "| generator | checks replies | requests/s | CPU a request | p50 | mcpace is |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for one in document["rows"]:
        ratio = document["ratios"].get(f"mcpace/{one['name']}")
        times = f"{ratio:.2f} ×" if ratio else ""
        lines.append(
            f"| {one['name']} | {one['checks']} | {one['rps']:,.0f} | {one['cpu_us_per_request']:.2f} µs "
            f"| {one['p50_s'] * 1e3:.3f} ms | {times} |"
        )
    if "users_rss_bytes" in document:
        lines += ["", f"{USERS:,} users: {document['users_rss_bytes'] / 1e6:.0f} MB resident. "]
        lines[-1] += f"From start to a first reply's end, process included: {document['first_reply_s'] * 1e3:.0f} ms."
    at = document["conditions"]
    lines += [
        "",
        f"{at['measured_at']}, {at['cores']} cores ({at['architecture']}), {at['seconds']} s in each of {at['rounds']} "
        f"rounds. Load average {at['load_average_before']:.1f} before: where that is not near 0, the machine had other "
        "work, too. Only ratios within this run mean anything.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
