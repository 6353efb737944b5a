"""Runs the official conformance suite against the 'everything' servers and holds every scenario to what is expected.

There are two: the one in Rust, and the same with the Python face.

The suite's own exit code looks at the scored scenarios alone; here the unscored ones count as well.

Expected failures are listed in `expected/<requirements>.txt`, for one mode in
`expected/<requirements>-<mode>.txt`, for the Python face in `expected/python-….txt` likewise. A line is
`scenario:check-id  # reason`. The list is strict both ways: a failure that is not listed fails the run, and so does
a line for a check that passes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
OUTPUT = TARGET / "conformance"
MODULES = OUTPUT / "npm" / "node_modules"

MODES = {
    "auto": ["--response", "auto"],
    "sse": ["--response", "sse"],
    # The suite's client opens its stream for questions while it calls: either may come first.
    "json": ["--response", "json"],
    "stateless": ["--response", "auto", "--stateless"],
}
REQUIREMENTS = {
    "2025-11-25": ("auto", "sse", "json", "stateless"),
    # Knows no sessions in any mode.
    "2026-07-28": ("auto", "sse", "json"),
}
SERVERS = ("rust", "python")
SUITE_LIMIT_SECONDS = 300
AT_ONCE = 4
"""Runs of the suite at the same time."""


@dataclass
class Outcome:
    """Results of one run of the suite, scenario by scenario."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    checks: int = 0


def main() -> int:
    arguments = parse_arguments()
    install()
    servers = (arguments.server or SERVERS) if arguments.url is None else ["other"]
    commands = {"rust": lambda: [str(build())], "python": lambda: [sys.executable, str(HERE / "everything.py")]}
    built = {name: commands[name]() for name in servers if name in commands}
    runs = [
        (name, requirements, mode)
        for name in servers
        for requirements in arguments.requirements or REQUIREMENTS
        for mode in arguments.mode or REQUIREMENTS[requirements]
    ]

    def outcome_of(run: tuple[str, str, str]) -> Outcome:
        name, requirements, mode = run
        title = f"{name}-{requirements}-{mode}"
        with running(built.get(name, []), mode, title, arguments.url) as url:
            return run_suite(requirements, title, url)

    # The suite waits most of the time. Each run has a server of its own; one that is given serves one run at a time.
    with ThreadPoolExecutor(max_workers=1 if arguments.url is not None else AT_ONCE) as executor:
        good = [
            judge(*run, outcome, expected_failures(*run), arguments.verbose)
            for run, outcome in zip(runs, executor.map(outcome_of, runs), strict=True)
        ]
    return 0 if all(good) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", action="append", choices=REQUIREMENTS, help="default: both")
    parser.add_argument("--mode", action="append", choices=[*MODES], help="default: all")
    parser.add_argument("--server", action="append", choices=SERVERS, help="default: both")
    parser.add_argument("--url", help="test this server in place of our own")
    parser.add_argument("--verbose", action="store_true", help="show the failures that are expected, too")
    return parser.parse_args()


def install() -> None:
    """Installs the pinned suite outside of the sources, once for each lock file."""
    if shutil.which("npm") is None:
        raise SystemExit("Node and its npm are needed for the conformance suite: install Node 20 or newer")
    folder = MODULES.parent
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed"
    lock = (HERE / "package-lock.json").read_text()
    if stamp.exists() and stamp.read_text() == lock:
        return
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(HERE / name, folder / name)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
    stamp.write_text(lock)


def build() -> Path:
    """The 'everything' server, in the profile that the tests are built in, so that both share what is compiled."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "mcpace-serve", "--example", "everything"], cwd=ROOT, check=True
    )
    return TARGET / "debug" / "examples" / "everything"


@contextmanager
def running(command: list[str], mode: str, title: str, url: str | None) -> Iterator[str]:
    """A server for one run; it must still be alive at the end."""
    if url is not None:
        yield url
        return
    with (OUTPUT / f"server-{title}.log").open("w") as log:
        process = subprocess.Popen([*command, "http", *MODES[mode]], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        line = process.stdout.readline()
        watchdog.cancel()
        if not line.startswith("listening on "):
            raise SystemExit(f"the server did not start; see {log.name}")
        yield line.removeprefix("listening on ").strip()
        if process.poll() is not None:
            raise SystemExit(f"the server died with {process.returncode}; see {log.name}")
    finally:
        process.kill()
        process.wait()


def run_suite(requirements: str, title: str, url: str) -> Outcome:
    results = OUTPUT / title
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    with (OUTPUT / f"{title}.log").open("w") as log:
        suite("server", "--url", url, "--requirements", requirements, "-o", str(results), stdout=log, check=False)
    outcome = Outcome()
    for scenario in scenarios(requirements):
        # The folder is named 'server-<scenario>-<time>'.
        found = sorted(
            p for p in results.iterdir() if re.fullmatch(rf"server-{re.escape(scenario)}-\d{{4}}-.*Z", p.name)
        )
        if not found or not (found[-1] / "checks.json").exists():
            outcome.missing.append(scenario)
            continue
        checks = json.loads((found[-1] / "checks.json").read_text())
        judged = [c for c in checks if c["status"] in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")]
        outcome.checks += len(judged)
        failed = {c["id"]: describe(c) for c in judged if c["status"] in ("FAILURE", "WARNING")}
        if failed:
            outcome.failed[scenario] = failed
        elif any(c["status"] == "SUCCESS" for c in judged):
            outcome.passed.append(scenario)
        else:
            # Nothing was found wrong because nothing was looked at.
            outcome.failed[scenario] = {c["id"]: describe(c) for c in judged} or {"empty": "no check was made"}
    return outcome


def describe(check: dict[str, object]) -> str:
    reason = str(check.get("errorMessage") or check.get("description"))
    first = reason.splitlines()[0]
    return f"{check['status']}: {first if len(first) <= 400 else first[:400] + '…'}"


def scenarios(requirements: str) -> list[str]:
    """Every server scenario of a requirement set, scored or not."""
    listing = suite("list", "--server", "--requirements", requirements, stdout=subprocess.PIPE).stdout
    server, _, rest = listing.partition("Client scenarios")
    _, _, unscored = rest.partition("never scored:")
    names = re.findall(r"^ +- (\S+)$", server, re.M) + re.findall(r"^ +- (\S+) \[server\]$", unscored, re.M)
    if len(names) < 20:
        raise SystemExit(f"can't read the suite's list of scenarios:\n{listing}")
    return names


def suite(*arguments: str, stdout: object = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    program = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return subprocess.run(
        [str(MODULES / ".bin" / "node"), str(program), *arguments],
        stdout=stdout,  # type: ignore[arg-type]
        stderr=subprocess.STDOUT,
        text=True,
        check=check,
        timeout=SUITE_LIMIT_SECONDS,
    )


def expected_failures(server: str, requirements: str, mode: str) -> dict[str, str]:
    """`scenario:check-id` → reason."""
    expected = {}
    names = [requirements, f"{requirements}-{mode}"]
    if server == "python":
        names += [f"python-{name}" for name in names]
    for path in (HERE / "expected" / f"{name}.txt" for name in names):
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            if not line.strip() or line.startswith("#"):
                continue
            entry, _, reason = line.partition("#")
            if not reason.strip() or ":" not in entry:
                raise SystemExit(f"{path}:{number}: a line is 'scenario:check-id  # reason'")
            expected[entry.strip()] = reason.strip()
    return expected


def judge(server: str, requirements: str, mode: str, outcome: Outcome, expected: dict[str, str], verbose: bool) -> bool:
    failures = {
        f"{scenario}:{check}": why for scenario, checks in outcome.failed.items() for check, why in checks.items()
    }
    unexpected = {name: why for name, why in failures.items() if name not in expected}
    stale = [name for name in expected if name not in failures]
    total = len(outcome.passed) + len(outcome.failed) + len(outcome.missing)
    allowed = sum(all(f"{s}:{c}" in expected for c in checks) for s, checks in outcome.failed.items())
    print(
        f"{server:<6} {requirements} {mode:<9} {len(outcome.passed)} of {total} scenarios passed, "
        f"{total - len(outcome.passed) - allowed} failed, {allowed} failed as expected ({outcome.checks} checks)"
    )
    for name, why in (failures if verbose else unexpected).items():
        print(f"    {'expected' if name in expected else 'FAILED'} {name}: {why}")
    for name in outcome.missing:
        print(f"    NOT RUN {name}")
    for name in stale:
        print(f"    STALE {name}: listed as an expected failure, but it passes")
    return not (unexpected or stale or outcome.missing)


if __name__ == "__main__":
    sys.exit(main())
