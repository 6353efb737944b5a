"""Client libraries for the tools of a Python server: calls a second and processor time of the shop workload.

mcpace's Python face serves the tools of the shop with one pair of an HTTP and a Redis client for each row. All servers
run for the whole time and take turns, round after round, so that the machine's drift affects all alike. Ratios are
taken within rounds and are to the first row, the clients of the workload ``shop``.

``--targets`` compares whole servers instead: mcpace's Python face and the official SDK in ``shop`` and ``shop-quick``,
and rmcp.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import distributions
from pathlib import Path

import libraries

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.adapters.subject import resolve_subject
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.load.plan import Closed
from mcpace.lab.paths import cache_folder, find_uv
from mcpace.lab.processes import limits
from mcpace.lab.processes.child_processes import run_child
from mcpace.lab.servers import rounds_to_case
from mcpace.lab.servers.plan import REVISION
from mcpace.lab.servers.server_under_test import Conditions, ServerUnderTest
from mcpace.lab.servers.workloads import Workload
from mcpace.lab.statistics.paired_ratio import paired_ratio
from mcpace.report.model.run import Subject
from mcpace.system.processors import usable_cores

SERVER = Path(__file__).with_name("shop_server.py")
INSTALL_LIMIT_S = 300.0
FIRST = ("httpx", "redis-py")
BEST_HTTP, BEST_REDIS, BLOCKING_REDIS = "wreq", "valkey-glide", "redis-py, hiredis in threads"
UVLOOP = "uvloop==0.23.0"


@dataclass
class Row:
    """One server and its measurements."""

    name: str
    versions: str
    server: ServerUnderTest
    rates: list[float] = field(default_factory=list)


def main() -> int:
    options = parse()
    with ExitStack() as stack:
        conditions = common_conditions(options, stack)
        rows = list(target_rows(conditions, stack) if options.targets else library_rows(conditions, options.only))
        for row in rows:
            stack.callback(row.server.close)
            say(f"starting {row.name}")
            row.server.start_server()
            if row.server.error:
                say(f"{row.name}: {row.server.error}")
        for number in range(1, options.rounds + 1):
            for row in rows if number % 2 else rows[::-1]:
                if row.server.is_open:
                    row.server.run_round(number)
                    say(f"round {number}: {row.name}: {rates_of(row)[-1]:,.0f} calls/s")
    print(table(rows, options))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", type=lambda names: names.split(";"), default=[], metavar="NAME;…", help="these rows and the first"
    )
    parser.add_argument("--targets", action="store_true", help="compare whole servers instead of libraries")
    parser.add_argument("--rounds", type=int, default=4, help="rounds over all servers (default: 4)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each measurement (default: 2)")
    parser.add_argument("--vus", type=int, default=50, help="users (default: 50)")
    return parser.parse_args()


def common_conditions(options: argparse.Namespace, stack: ExitStack) -> Conditions:
    """Two processors for each server, as in ``mcpace servers``."""
    cap = limits.choose_cap(float(min(2, len(usable_cores()))), limits.parse_memory("2g"))
    workload = stack.enter_context(Workload("shop"))
    return Conditions(
        workload, cap, Closed(vus=options.vus), (REVISION,), "user", "stateless", options.seconds, 1.0, 60.0
    )


def library_rows(conditions: Conditions, only: Sequence[str]) -> Iterator[Row]:
    """A row for each HTTP client with the best Redis client, and for each Redis client with the best HTTP client."""
    pairs = [(http, BEST_REDIS) for http, library in libraries.HTTP.items() if not library.blocks]
    pairs += [(BEST_HTTP, redis) for redis, library in libraries.REDIS.items() if not library.blocks]
    # Unchanged code of httpx on another transport, beside the first row.
    pairs += [(http, FIRST[1]) for http in libraries.HTTP if http.startswith("httpx on")]
    pairs += [(http, BLOCKING_REDIS) for http, library in libraries.HTTP.items() if library.blocks]
    for http, redis in [FIRST, *dict.fromkeys(pair for pair in pairs if pair != FIRST)]:
        name = f"{http} + {redis}"
        for loop, extra in (("", ()), (" + uvloop", (UVLOOP,))):
            if only and name + loop not in only and (http, redis) != FIRST:
                continue
            if loop and (http, redis) != (BEST_HTTP, BEST_REDIS):
                continue
            folders = [install(requirements) for requirements in packages_of(http, redis, extra)]
            command = [sys.executable, str(SERVER), "--http", http, "--redis", redis]
            command += [word for folder in folders for word in ("--packages", str(folder))]
            server = ServerUnderTest(Subject(sdk=name + loop, mode="json"), conditions, tuple(command))
            yield Row(name + loop, versions_in(folders), server)


def packages_of(http: str, redis: str, extra: tuple[str, ...]) -> list[tuple[str, ...]]:
    lists = [libraries.HTTP[http].requirements, libraries.REDIS[redis].requirements, extra]
    return [requirements for requirements in lists if requirements]


def install(requirements: tuple[str, ...]) -> Path:
    """Installs packages into a folder of their own, once."""
    name = "-".join(requirement.replace("==", "-") for requirement in requirements)
    folder = cache_folder() / "benches" / "shop" / f"{name}-{platform.python_version()}"
    if not (folder / ".complete").exists():
        say(f"installing {', '.join(requirements)}")
        command = [str(find_uv()), "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
        done = run_child([*command, "--target", str(folder), *requirements], INSTALL_LIMIT_S)
        if done.code != 0:
            sys.exit(f"{', '.join(requirements)} can't be installed: {done.stderr}")
        (folder / ".complete").touch()
    return folder


def versions_in(folders: Sequence[Path]) -> str:
    """Versions of the packages that the requirements name."""
    every = [*libraries.HTTP.values(), *libraries.REDIS.values()]
    named = {part.partition("==")[0].lower() for library in every for part in (*library.requirements, UVLOOP)}
    found = {one.name: one.version for folder in folders for one in distributions(path=[str(folder)])}
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()) if name.lower() in named)


def target_rows(conditions: Conditions, stack: ExitStack) -> Iterator[Row]:
    """Whole servers, each with the libraries of its workload."""
    quick = replace(conditions, workload=stack.enter_context(Workload("shop-quick")))
    servers = [
        ("python@2.3.0:json", conditions),
        ("python@2.3.0:json", quick),
        ("mcpace-python:json", conditions),
        ("mcpace-python:json", quick),
        ("rmcp@3.9.0:json", conditions),
    ]
    for text, its in servers:
        resolved = resolve_subject(text, say, Role.SERVER)
        environment = release_environment.ensure_environment(
            resolved.adapter, resolved.version, say, Role.SERVER, its.workload.name
        )
        subject = Subject(sdk=resolved.adapter.name, version=resolved.version, mode=resolved.mode)
        server = ServerUnderTest(subject, its, resolved.adapter.server_command(environment), environment)
        yield Row(f"{subject.label()} in {its.workload.name}", "", server)


def rates_of(row: Row) -> list[float]:
    return [rounds_to_case.throughput(one.outcome) for one in row.server.rounds]


def table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The rows as Markdown, the ratios to the first row with Student's 95 % interval over the rounds."""
    lines = [
        f"{options.rounds} interleaved rounds of {options.seconds:g} s, {options.vus} users, Python "
        f"{platform.python_version()}",
        "",
        "| tools use | versions | calls/s ÷ first | CPU a call | CPU ÷ first |",
        "|---|---|---:|---:|---:|",
    ]
    first = rows[0]
    for row in rows:
        if not row.server.rounds:
            lines.append(f"| {row.name} | {row.versions} | {row.server.error or 'no round'} | – | – |")
            continue
        ratio = paired_ratio(rates_of(row), rates_of(first))
        if row is first or ratio is None:
            rate = "1" if row is first else "–"
        else:
            value, low, high, _ = ratio
            rate = f"{value:.2f}" if low is None else f"{value:.2f} ({low:.2f}–{high:.2f})"
        cpu, base = cpu_of(row), cpu_of(first)
        lines.append(f"| {row.name} | {row.versions} | {rate} | {cpu * 1e6:,.0f} µs | {cpu / base:.2f} |")
    return "\n".join(lines)


def cpu_of(row: Row) -> float:
    calls = sum(one.calls_in_all for one in row.server.rounds)
    return sum(one.cpu_s or 0.0 for one in row.server.rounds) / calls


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
