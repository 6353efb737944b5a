"""Answers of `mcpace measure --inside` about tools in Java: the official SDK, java.net.http, JDBC and PostgreSQL.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support import databases, java_program
from support.commands import run
from support.finding_scenes import patient
from support.weather_api import weather_api


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return java_program.compile_program("Weather", tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """URL of a database with items, for JDBC."""
    with databases.postgresql() as address:
        host, port = address["DATABASE_HOST"], address["DATABASE_PORT"]
        with psycopg.connect(host=host, port=port, user="invoices", dbname="invoices", autocommit=True) as one:
            one.execute("CREATE TABLE items AS SELECT k, 'value ' || k AS v FROM generate_series(1, 50000) AS k")
        yield f"jdbc:postgresql://{host}:{port}/invoices?user=invoices"


@pytest.fixture
def dependency() -> Iterator[str]:
    # Building a client takes 3 to 10 ms, which must be a notable part of the call.
    with weather_api(answer_s=0.01) as base:
        yield base


def measured(way: str, class_path: str, base: str, database: str, folder: Path) -> dict[str, Any]:
    """The case of the tool's calls."""
    command = shlex.join(["java", "-cp", class_path, "Weather", way, base, database])
    done = run("measure", f"stdio:{command}", "--tool", "forecast", "--inside", "--json", folder=folder)
    assert done.code == 0, done.stderr
    [case] = [case for case in json.loads(done.stdout)["cases"] if case["operation"] == "call"]
    assert case["inside"]["missing"] == [], case["inside"]
    return dict(case)


def inside_codes(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding["context"] for finding in case["findings"]}


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
        ("one-statement", set()),
        ("own-connections", {"client-built-per-call"}),
        ("one-connection", set()),
        ("slow", {"slow-dependency"}),
        ("sleeps", set()),
        ("computes", set()),
    ],
)
@patient
def test_the_cause_inside_a_java_tool_is_named_and_its_control_is_not(
    way: str, codes: set[str], class_path: str, dependency: str, database: str, tmp_path: Path
) -> None:
    case = measured(way, class_path, dependency, database, tmp_path)
    found = inside_codes(case)
    # A client that is built in each call also connects in each call.
    also = {"dependency-connection-per-call"} if way.startswith("own-") else set()
    assert codes <= set(found) <= codes | also, found
    inside = case["inside"]
    if inside["server_s"] > 0.02:
        assert inside["rest_s"] <= 0.2 * inside["server_s"], inside
    if "client-built-per-call" in found:
        assert found["client-built-per-call"]["file"] == "Weather.java", found
        assert found["client-built-per-call"]["function"] in ("Weather.secureClient", "Weather.forecast"), found
    if way in ("sleeps", "computes"):
        function = "Weather.forecast" if way == "sleeps" else "Weather.compute"
        lines = [line for line in inside["lines"] if (line["file"], line["function"]) == ("Weather.java", function)]
        assert sum(line["running_s"] + line["waiting_s"] for line in lines) > 0.5 * inside["server_s"], inside
        assert inside["lines"][0] in lines


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("before", "code", "after"),
    [
        ("own-clients", "client-built-per-call", "one-client"),
        ("one-client", "serial-dependencies", "together"),
        ("statements", "repeated-dependency-call", "one-statement"),
        ("own-connections", "client-built-per-call", "one-connection"),
    ],
)
@patient
def test_the_advised_change_of_a_java_tool_gains_what_was_estimated(
    before: str, code: str, after: str, class_path: str, dependency: str, database: str, tmp_path: Path
) -> None:
    cases = [measured(way, class_path, dependency, database, tmp_path) for way in (before, after)]
    # The first call of each process is no trial.
    took = [statistics.median(case["trials_s"]) for case in cases]
    found, gain = inside_codes(cases[0]), took[0] - took[1]
    # One client for all calls also keeps its connection.
    changed = {code, "dependency-connection-per-call"} if before == "own-clients" else {code}
    estimate = sum(context["gain_ns"] for name, context in found.items() if name in changed) / 1e9
    assert code in found, found
    assert 0.5 * gain <= estimate <= 1.5 * gain, (took, estimate, gain)
