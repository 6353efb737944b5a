"""Answers of `mcpace measure --inside` about tools of the official SDK: real libraries, and an HTTP server.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.finding_scenes import patient
from support.inside_measurement import contexts_by_code, measure_inside
from support.release_proofs import interpreter
from support.weather_api import weather_api

RELEASE = "python@1.30.0"

SERVER = """
import asyncio, sqlite3, sys, time
import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("weather")
way, base, database = sys.argv[1:]
shared = httpx.AsyncClient()
KINDS = ("geo", "now", "hourly", "daily", "alerts")

tasks = []

def nap():
    time.sleep(0.1)

async def tick():
    while True:
        await asyncio.sleep(0.02)

@mcp.tool()
async def forecast() -> str:
    global tasks
    if way == "own-clients":
        for kind in KINDS:
            async with httpx.AsyncClient() as client:
                await client.get(f"{base}/{kind}")
    elif way == "one-client":
        for kind in KINDS:
            await shared.get(f"{base}/{kind}")
    elif way == "together":
        await asyncio.gather(*(shared.get(f"{base}/{kind}") for kind in KINDS))
    elif way == "each-item":
        for number in range(6):
            await shared.get(f"{base}/items/{number}")
    elif way == "slow":
        await shared.get(f"{base}/slow")
    elif way == "sleeps":
        time.sleep(0.1)
    elif way == "waits":
        await asyncio.sleep(0.1)
    elif way == "waits-in-thread":
        await asyncio.to_thread(nap)
    elif way == "limits":
        await asyncio.wait_for(shared.get(f"{base}/slow"), 30)
    elif way == "computes":
        begin = time.thread_time()
        while time.thread_time() < begin + 0.1:
            sum(range(1000))
    elif way == "background":
        tasks = tasks or [asyncio.create_task(tick())]
        woken = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, woken.set)
        await woken.wait()
    elif way == "statements":
        cursor = sqlite3.connect(database).cursor()
        for number in range(20):
            cursor.execute("SELECT count(*) FROM t WHERE hex(v) LIKE ? || '%'", (str(number),)).fetchall()
    return way

mcp.run()
"""


@pytest.fixture
def dependency() -> Iterator[str]:
    with weather_api() as base:
        yield base


def measured(way: str, base: str, folder: Path) -> dict[str, Any]:
    """The case of the tool's calls."""
    program = folder / "weather.py"
    program.write_text(SERVER)
    database = folder / "data.sqlite"
    if not database.exists():
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE t (k INTEGER, v TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", ((n, f"value {n}") for n in range(20_000)))
        connection.close()
    command = [interpreter(RELEASE), str(program), way, base, str(database)]
    return measure_inside(command, "forecast", folder)


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("way", "codes"),
    [
        ("own-clients", {"client-built-per-call", "serial-dependencies"}),
        ("one-client", {"serial-dependencies"}),
        ("together", set()),
        ("each-item", {"repeated-dependency-call"}),
        ("statements", {"repeated-dependency-call"}),
        ("slow", {"slow-dependency"}),
        ("sleeps", {"blocking-call-in-event-loop"}),
        ("waits", {"timer-wait"}),
        ("waits-in-thread", {"timer-wait"}),
        ("limits", {"slow-dependency"}),
        ("computes", set()),
        ("background", set()),
    ],
)
@patient
def test_the_cause_inside_a_tool_is_named_and_its_control_is_not(
    way: str, codes: set[str], dependency: str, tmp_path: Path
) -> None:
    case = measured(way, dependency, tmp_path)
    found = contexts_by_code(case)
    assert set(found) == codes, found
    inside = case["inside"]
    # No source tells of a timer that is no sleep.
    assert (inside["rest_s"] > 0.8 * inside["server_s"]) == (way == "background"), inside
    assert way == "background" or inside["rest_s"] <= 0.2 * inside["server_s"], inside
    for name in ("client-built-per-call", "blocking-call-in-event-loop", "timer-wait"):
        if name in found:
            assert found[name]["file"].endswith("weather.py"), found
            assert found[name]["function"] in ("forecast", "nap"), found


@pytest.mark.proof
@pytest.mark.network
@patient
def test_the_advised_change_gains_what_was_estimated(dependency: str, tmp_path: Path) -> None:
    before = measured("own-clients", dependency, tmp_path)
    found = contexts_by_code(before)
    shared = measured("one-client", dependency, tmp_path)
    together = measured("together", dependency, tmp_path)
    took = [case["inside"]["server_s"] for case in (before, shared, together)]
    estimated = [found[code]["gain_ns"] / 1e9 for code in ("client-built-per-call", "serial-dependencies")]
    gained = [took[0] - took[1], took[1] - took[2]]
    for estimate, gain in zip(estimated, gained, strict=True):
        assert 0.5 * gain <= estimate <= 1.5 * gain, (took, estimated, gained)


@pytest.mark.proof
@pytest.mark.network
@patient
def test_a_tool_without_its_timer_gains_what_was_estimated(dependency: str, tmp_path: Path) -> None:
    before, after = (measured(way, dependency, tmp_path) for way in ("waits", "nothing"))
    gain = before["inside"]["server_s"] - after["inside"]["server_s"]
    context = contexts_by_code(before)["timer-wait"]
    assert context["timers"] == 1, context
    assert 0.8 * gain <= context["gain_ns"] / 1e9 <= 1.2 * gain, (before, after)
