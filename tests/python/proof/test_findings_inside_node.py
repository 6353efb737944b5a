"""Answers of `mcpace measure --inside` about tools of the official TypeScript SDK: real libraries and databases.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support import databases
from support.finding_scenes import patient
from support.node_weather import NodeWeather
from support.redis_server import RedisServer
from support.weather_api import weather_api

CASES = [
    ("serial", "serial-dependencies", "together"),
    ("serialAxios", "serial-dependencies", "togetherAxios"),
    ("statements", "repeated-dependency-call", "statement"),
    ("keys", "repeated-dependency-call", "sharedRedis"),
    ("executes", "blocking-call-in-event-loop", "executesAsynchronously"),
    ("derives", "blocking-call-in-event-loop", "derivesAsynchronously"),
    ("validates", "validation-cost", "keepsValidated"),
    ("reads", "blocking-call-in-event-loop", "readsAsynchronously"),
    ("waits", "timer-wait", "listens"),
]
"""A way to work, the cause that it shows, and the advised change."""
TRUE_IN_CHANGE = {"readsAsynchronously": {"gc-pauses"}}
"""Causes that a change may have: V8 collects the buffers of the files that the tool reads."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NodeWeather]:
    with weather_api() as api, databases.postgresql() as place, RedisServer(tmp_path) as redis:
        url = f"postgresql://invoices@{place['DATABASE_HOST']}:{place['DATABASE_PORT']}/invoices"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE cities (id integer PRIMARY KEY, name text, hex text)")
            connection.execute(
                "INSERT INTO cities SELECT n, 'city ' || n, md5(n::text) FROM generate_series(0, 20000) n"
            )
        yield NodeWeather.in_folder(tmp_path, api=api, postgresql=url, redis=redis.url)


def inside_codes(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding["context"] for finding in case["findings"]}


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("sdk", [1, 2])
@pytest.mark.parametrize(("way", "code", "change"), CASES)
@patient
def test_the_cause_inside_a_tool_of_node_is_named_and_the_change_gains_what_was_estimated(
    way: str, code: str, change: str, sdk: int, server: NodeWeather
) -> None:
    before, after = (server.with_sdk(sdk).measured(one) for one in (way, change))
    assert set(inside_codes(before)) == {code}
    assert set(inside_codes(after)) <= TRUE_IN_CHANGE.get(change, set())
    context = inside_codes(before)[code]
    if "file" in context:
        assert context["file"].endswith("weather.mjs"), context
    else:
        gain = before["inside"]["server_s"] - after["inside"]["server_s"]
        assert 0.5 * gain <= context["gain_ns"] / 1e9 <= 1.5 * gain, (before, after)


@pytest.mark.proof
@pytest.mark.network
@patient
def test_a_slow_dependency_of_node_is_named(server: NodeWeather) -> None:
    found = inside_codes(server.measured("slow"))
    assert set(found) == {"slow-dependency"}
    assert found["slow-dependency"]["pattern"] == "GET /slow"


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("way", "codes"), [("limits", {"slow-dependency"}), ("computes", set()), ("background", set())]
)
@patient
def test_timers_that_no_call_of_node_waits_for_are_not_named(way: str, codes: set[str], server: NodeWeather) -> None:
    assert set(inside_codes(server.measured(way))) == codes
