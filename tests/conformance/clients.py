"""Runs the official conformance suite's client scenarios with our clients, each held to what is expected.

The clients are `crates/client/examples/conformance.rs` and `client.py`, which does the same with the Python face.
Expected failures are listed in `expected/client-<requirements>.txt`, strict both ways; see `run.py` for the helpers.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import run

CLIENTS = ("rust", "python")
# The suite starts all clients at once, which a small machine takes its time over.
PATIENCE_MS = 120_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", action="append", choices=run.REQUIREMENTS, help="default: both")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="default: both")
    parser.add_argument("--verbose", action="store_true", help="show the failures that are expected, too")
    arguments = parser.parse_args()
    run.install()
    # A proxy of the machine must not come between the suite and its own servers.
    os.environ["NO_PROXY"] = "localhost,127.0.0.1"
    names = arguments.client or CLIENTS
    commands = {"python": f"{sys.executable} {run.HERE / 'client.py'}"}
    if "rust" in names:
        commands["rust"] = str(build())
    runs = [(name, requirements) for name in names for requirements in arguments.requirements or run.REQUIREMENTS]
    # Each run starts all of its clients at once, so that few runs are enough.
    with ThreadPoolExecutor(max_workers=2) as executor:
        outcomes = executor.map(lambda one: run_suite(*one, commands[one[0]]), runs)
        good = [
            run.judge(f"client-{name}", requirements, "", outcome, expectations(requirements), arguments.verbose)
            for (name, requirements), outcome in zip(runs, outcomes, strict=True)
        ]
    return 0 if all(good) else 1


def build() -> Path:
    """The client of the suite, in the profile that the tests are built in."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "mcpace-client", "--example", "conformance"],
        cwd=run.ROOT,
        check=True,
    )
    return run.TARGET / "debug" / "examples" / "conformance"


def run_suite(name: str, requirements: str, command: str) -> run.Outcome:
    results = run.OUTPUT / f"client-{name}-{requirements}"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    with (run.OUTPUT / f"client-{name}-{requirements}.log").open("w") as log:
        run.suite(
            "client",
            "--command",
            command,
            "--requirements",
            requirements,
            "--timeout",
            str(PATIENCE_MS),
            "-o",
            str(results),
            stdout=log,
            check=False,
        )
    outcome = run.Outcome()
    for scenario in scenarios(requirements):
        folder, _, last = scenario.rpartition("/")
        # The folder is named '<scenario>-<time>'.
        found = sorted(
            path
            for path in (results / folder).glob(f"{last}-*")
            if re.fullmatch(rf"{re.escape(last)}-\d{{4}}-.*Z", path.name)
        )
        if not found or not (found[-1] / "checks.json").exists():
            outcome.missing.append(scenario)
            continue
        judge(outcome, scenario, json.loads((found[-1] / "checks.json").read_text()))
    return outcome


def judge(outcome: run.Outcome, scenario: str, checks: list[dict[str, object]]) -> None:
    judged = [check for check in checks if check["status"] in ("SUCCESS", "FAILURE", "WARNING")]
    outcome.checks += len(judged)
    failed = {str(check["id"]): run.describe(check) for check in judged if check["status"] != "SUCCESS"}
    if failed:
        outcome.failed[scenario] = failed
    elif judged:
        outcome.passed.append(scenario)
    else:
        outcome.failed[scenario] = {"empty": "no check was made"}


def scenarios(requirements: str) -> list[str]:
    """Every client scenario of a requirement set, scored or not."""
    listing = run.suite("list", "--client", "--requirements", requirements, stdout=subprocess.PIPE).stdout
    _, _, client = listing.partition("Client scenarios")
    scored, _, unscored = client.partition("never scored:")
    names = re.findall(r"^ +- (\S+)$", scored, re.M) + re.findall(r"^ +- (\S+) \[client\]$", unscored, re.M)
    if len(names) < 20:
        raise SystemExit(f"can't read the suite's list of scenarios:\n{listing}")
    return names


def expectations(requirements: str) -> dict[str, str]:
    """`scenario:check-id` → reason."""
    expected = {}
    path = run.HERE / "expected" / f"client-{requirements}.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        entry, _, reason = line.partition("  # ")
        if line.strip() and not line.startswith("#"):
            expected[entry.strip()] = reason.strip()
    return expected


if __name__ == "__main__":
    sys.exit(main())
