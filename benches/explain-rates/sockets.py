"""How often ``explain`` names a cause in recordings of real sockets: random hosts and servers, a recorder between.

A host has some sessions, each with some calls at a time, pings and pauses. The server is uvicorn with one tool. A cause
is a property of the server, of the host or of the network. It counts as named if a finding has its code, or lists it
as what would look the same. It costs at least 20 ms or a tenth of a call. The table is Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))

from mcpace import _core
from support import finding_scenes as scenes
from support.finding_scenes import Endpoint, Recorded, serve_app, start_recorder
from support.http_client import HttpClient
from support.network import NEEDS, Road, connect_network, has_namespaces

SCENES, HEALTHY = 20, 80
LIMIT_S = 60.0
MOST_S = 3.0
"""Longest time of the calls of a task."""
PART, NOTABLE_S = 0.1, 0.02
MOST_TRIES = 3
HEALTHY_SCENE = "healthy"


@dataclass
class Host:
    """How a host uses the server."""

    sessions: int
    at_once: int
    """Calls of a session at a time."""
    calls: int
    """Calls of each task, one after another."""
    tool_s: float
    spread: float
    pause_s: float
    pings: bool
    lists_first: bool
    lists_each: bool = False
    new_connections: bool = False


@dataclass
class Setup:
    """A host, a server and a network."""

    host: Host
    endpoint: Endpoint = field(default_factory=lambda: Endpoint(scenes.waiting))
    nodelay: bool = True
    road: Road | None = None
    loss_each: int | None = None
    """One of so many segments with requests is lost."""


def random_setup(dice: random.Random) -> Setup:
    tool_s = 0.003 * 200 ** dice.random()
    at_once = dice.choice([1, 1, 2, 4, 8])
    host = Host(
        sessions=dice.choice([1, 1, 2, 3]),
        at_once=at_once,
        calls=max(2, min(dice.randint(3, 60), int(MOST_S / tool_s))),
        tool_s=tool_s,
        spread=dice.choice([0.02, 0.1, 0.4]),
        pause_s=dice.choice([0.0, 0.002, 0.02]),
        pings=dice.random() < 0.4,
        lists_first=dice.random() < 0.7,
    )
    return Setup(host, Endpoint(scenes.waiting, events=dice.random() < 0.5))


def make_busy(setup: Setup, limit: int = 1) -> None:
    """Makes more calls at a time than the server's limit, of a notable time."""
    host = setup.host
    host.tool_s = max(host.tool_s, NOTABLE_S)
    host.at_once = max(host.at_once, 2 * limit)
    host.calls = max(3, min(host.calls, int(MOST_S * limit / (host.tool_s * host.at_once * host.sessions))))


def block_loop(setup: Setup, dice: random.Random) -> None:
    make_busy(setup)
    setup.endpoint.tool = scenes.blocking


def serialize_sessions(setup: Setup, dice: random.Random) -> None:
    make_busy(setup)
    setup.endpoint.turns = scenes.one_of_a_session()


def limit_tools(setup: Setup, dice: random.Random) -> None:
    limit = dice.randint(2, 4)
    make_busy(setup, limit)
    setup.endpoint.tool = scenes.in_threads(limit)


def limit_requests(setup: Setup, dice: random.Random) -> None:
    limit = dice.randint(2, 4)
    make_busy(setup, limit)
    setup.host.pings = True
    setup.endpoint.turns = scenes.so_many_at_a_time(limit)
    setup.endpoint.head_in_turn = dice.random() < 0.5


def order_replies(setup: Setup, dice: random.Random) -> None:
    make_busy(setup)
    setup.host.spread = 1.0
    setup.endpoint.ordered = True


def charge_requests(setup: Setup, dice: random.Random) -> None:
    cost_s = dice.uniform(0.03, 0.1)

    @asynccontextmanager
    async def charged(*_: str) -> Any:
        await asyncio.sleep(cost_s)
        yield

    setup.host.lists_first = setup.host.pings = True
    setup.endpoint.turns = lambda session, method: charged(session, method)


def list_each(setup: Setup, dice: random.Random) -> None:
    setup.host.lists_each = True
    setup.endpoint.turns = lambda _, method: asleep(0.025 if method == "tools/list" else 0.0)


@asynccontextmanager
async def asleep(seconds: float) -> Any:
    await asyncio.sleep(seconds)
    yield


def delay_acknowledgements(setup: Setup, dice: random.Random) -> None:
    setup.nodelay = False
    setup.host.tool_s = min(setup.host.tool_s, 0.05)
    setup.host.calls = max(setup.host.calls, 8)


def lose_segments(setup: Setup, dice: random.Random) -> None:
    setup.road, setup.loss_each = Road(), dice.randint(15, 60)
    setup.host.tool_s = min(setup.host.tool_s, 0.02)
    setup.host.calls = 400 // setup.host.at_once


def move_away(setup: Setup, dice: random.Random) -> None:
    setup.road = Road(delay_s=dice.uniform(0.01, 0.04))


def connect_each(setup: Setup, dice: random.Random) -> None:
    setup.host.new_connections = True
    setup.road = Road(delay_s=0.01)


@dataclass(frozen=True)
class Cause:
    """A cause, and what follows from it."""

    code: str
    apply: Callable[[Setup, random.Random], None]
    also: frozenset[str] = frozenset()
    """Codes that are true of the scene as well."""


CAUSES = (
    Cause("blocked-event-loop", block_loop),
    Cause("serial-session", serialize_sessions),
    Cause("completion-waves", limit_tools, frozenset({"thread-pool-saturation"})),
    Cause("thread-pool-saturation", limit_requests, frozenset({"completion-waves"})),
    Cause("head-of-line", order_replies),
    Cause("constant-cost-per-request", charge_requests),
    Cause("repeated-listing", list_each),
    Cause("delayed-ack", delay_acknowledgements),
    Cause("packet-loss", lose_segments),
    Cause("distant-server", move_away),
    Cause("connection-per-request", connect_each, frozenset({"distant-server"})),
)


def record_scene(setup: Setup, dice: random.Random) -> tuple[_core.Recording, bool]:
    """Runs a scene. Returns its recording, and whether its calls took notably longer than their tool."""
    with ExitStack() as stack:
        listener: socket.socket | None = None
        if setup.road is not None:
            network = stack.enter_context(connect_network(setup.road))
            listener = stack.enter_context(network.listen())
            if setup.loss_each is not None:
                network.drop_requests(listener.getsockname()[1], setup.loss_each)
        url = stack.enter_context(serve_app(setup.endpoint, nodelay=setup.nodelay, listener=listener))
        record = stack.enter_context(start_recorder(url))
        spent = run_host(setup.host, record, dice)
        lost_s = sum(whole_s - tool_s for whole_s, tool_s in spent) / len(spent)
        whole_s = sum(whole_s for whole_s, _ in spent) / len(spent)
        return record.finish(), lost_s >= NOTABLE_S or lost_s >= PART * whole_s


def run_host(host: Host, record: Recorded, dice: random.Random) -> list[tuple[float, float]]:
    """Runs a host. Returns the time of each call, and that of its tool."""
    tasks = host.sessions * host.at_once
    done = threading.Event()
    for number in range(host.sessions):
        begin_session(host, record, f"s{number}")
    with ThreadPoolExecutor(tasks + 1) as threads:
        seeds = [dice.random() for _ in range(tasks)]
        running = [
            threads.submit(run_task, host, record, f"s{number % host.sessions}", number, random.Random(seed))
            for number, seed in enumerate(seeds)
        ]
        pinging = threads.submit(ping_until, done, record) if host.pings else None
        try:
            spent = [call for task in running for call in task.result(LIMIT_S)]
        finally:
            done.set()
        if pinging is not None:
            pinging.result(LIMIT_S)
    return spent


def begin_session(host: Host, record: Recorded, session: str) -> None:
    with connect(record, session) as wire:
        wire.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        wire.notify("notifications/initialized")
        if host.lists_first:
            wire.ask("tools/list")


def connect(record: Recorded, session: str) -> HttpClient:
    return HttpClient(int(record.recorder.url.rsplit(":", 1)[1].split("/")[0]), session=session)


def run_task(host: Host, record: Recorded, session: str, number: int, dice: random.Random) -> list[tuple[float, float]]:
    wire = connect(record, session)
    spent = []
    for call in range(host.calls):
        tool_s = host.tool_s * dice.lognormvariate(0.0, host.spread)
        start = time.monotonic()
        if host.new_connections:
            wire.close()
            wire = connect(record, session)
        if host.lists_each:
            wire.ask("tools/list")
        wire.ask("tools/call", {"name": "work", "arguments": {"seconds": tool_s, "call": f"{number}-{call}"}})
        spent.append((time.monotonic() - start, tool_s))
        time.sleep(host.pause_s * dice.uniform(0.3, 1.7))
    wire.close()
    return spent


def ping_until(done: threading.Event, record: Recorded) -> None:
    wire = record.wire("s0")
    while not done.wait(0.1):
        wire.ask("ping")


@dataclass
class Tally:
    """Scenes of one cause."""

    scenes: int = 0
    named: int = 0
    others: collections.Counter[str] = field(default_factory=collections.Counter)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("causes", nargs="*", help="only these causes; prints each miss")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not has_namespaces():
        sys.exit(f"explain-rates: {NEEDS}")
    chosen = [cause for cause in CAUSES if not options.causes or cause.code in options.causes]
    tallies: dict[str, Tally] = {}
    for cause in chosen:
        tallies[cause.code] = tally_cause(cause, options.seed, prints_misses=bool(options.causes))
    if not options.causes or HEALTHY_SCENE in options.causes:
        tallies[HEALTHY_SCENE] = tally_healthy(options.seed, prints_misses=bool(options.causes))
    print_table(tallies)


def tally_cause(cause: Cause, seed: int, *, prints_misses: bool) -> Tally:
    """Runs scenes of a cause until enough of them had calls that took notably longer."""
    tally = Tally()
    for number in range(MOST_TRIES * SCENES):
        if tally.scenes == SCENES:
            break
        dice = random.Random(f"{seed} {cause.code} {number}")
        setup = random_setup(dice)
        cause.apply(setup, dice)
        recording, is_notable = record_scene(setup, dice)
        if not is_notable:
            continue
        codes, possible = finding_codes(recording)
        is_named = cause.code in possible or bool(codes & cause.also)
        tally.scenes += 1
        tally.named += is_named
        tally.others.update(codes - {cause.code} - cause.also if cause.code in codes else ())
        if prints_misses and not is_named:
            print(f"{number}: {sorted(codes)} in {setup}", flush=True)
    return tally


def tally_healthy(seed: int, *, prints_misses: bool) -> Tally:
    """Runs scenes without a cause. Those without a finding count as named."""
    tally = Tally(scenes=HEALTHY)
    for number in range(HEALTHY):
        dice = random.Random(f"{seed} {HEALTHY_SCENE} {number}")
        setup = random_setup(dice)
        codes, _ = finding_codes(record_scene(setup, dice)[0])
        tally.named += not codes
        tally.others.update(codes)
        if prints_misses and codes:
            print(f"{number}: {sorted(codes)} in {setup}", flush=True)
    return tally


def finding_codes(recording: _core.Recording) -> tuple[set[str], set[str]]:
    """The codes of the findings, and these with the codes of what would look the same."""
    findings = [one for one in recording.findings() if one["code"] not in scenes.OF_THE_MACHINE]
    codes = {one["code"] for one in findings}
    return codes, codes | {other["code"] for one in findings for other in one["alternatives"]}


def print_table(tallies: dict[str, Tally]) -> None:
    print("| cause | scenes | named | also named, wrongly |\n|---|---|---|---|")
    for code, tally in tallies.items():
        others = ", ".join(f"{other} {number}" for other, number in tally.others.most_common())
        print(f"| {code} | {tally.scenes} | {tally.named} | {others} |")
    sick = [tally for code, tally in tallies.items() if code != HEALTHY_SCENE]
    print(f"| **all causes** | {sum(one.scenes for one in sick)} | {sum(one.named for one in sick)} | |")


if __name__ == "__main__":
    main()
