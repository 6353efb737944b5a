"""The time inside a tool in a report: rows that add up, and a tree that fills the call."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpace.lab.inside.source_paths import source_path, with_source_path
from mcpace.report.model.inside import (
    AddedTime,
    DependencyWait,
    FlameGraph,
    InsideSums,
    LineTime,
    PackageTime,
    ToolTime,
)
from mcpace.report.model.run import Case, DependencyLane, DependencySpan, Run, Subject, Waterfall, WaterfallExchange
from mcpace.report.page.build import page_of
from mcpace.report.page.inside import insides_of
from mcpace.report.page.model import FlameShown
from mcpace.report.words.inside_sums import BARS, added_words
from mcpace.report.words.quantities import duration, share
from mcpace.report.words.source_place import LONGEST_PATH, path_words
from mcpace.report.words.tool_time import NO_SOURCE, line_rows, split_rows

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
RUN = RUNS / "inside.json"


def tool_time(**members: object) -> ToolTime:
    """A tool whose calls take 100 ms, with many packages."""
    packages = [PackageTime(package=f"p{number}", time_s=0.004 + number / 1e4) for number in range(9)]
    told = {
        "calls": 4,
        "server_s": 0.1,
        "dependencies": [DependencyWait(kind="http", name="api:80", requests=2, time_s=0.03)],
        "packages": packages,
        "waiting_s": 0.012,
        "rest_s": 0.1 - 0.03 - 0.012 - sum(row.time_s for row in packages),
        **members,
    }
    return ToolTime.model_validate(told)


def run_with(inside: ToolTime, waterfall: Waterfall | None = None) -> Run:
    run = Run.load(RUNS / "measure.json")
    run.cases = [
        Case(subject=Subject(sdk="s"), target="t", operation="call", tool="f", inside=inside, waterfall=waterfall)
    ]
    return run


def outermost_s(flame: FlameShown) -> float:
    nodes = zip(flame.parents, flame.running_s, flame.waiting_s, strict=True)
    return sum(running_s + waiting_s for parent, running_s, waiting_s in nodes if parent == 0)


@pytest.mark.parametrize("most", [5, 12])
def test_the_rows_add_up_and_are_no_more_than_they_may_be(most: int) -> None:
    inside = tool_time()
    rows = split_rows(inside, most)
    assert len(rows) == min(most, 12)
    assert sum(row.time_s for row in rows) == pytest.approx(inside.server_s)
    assert [row.time_s for row in rows] == sorted((row.time_s for row in rows), reverse=True)
    assert NO_SOURCE in [row.words for row in rows]
    joined = [row.words for row in rows if row.kind == "others"]
    assert joined == (["ran in 8 other packages"] if most == 5 else [])


def test_rows_without_time_are_left_out() -> None:
    rows = split_rows(tool_time(packages=[], waiting_s=0.0, rest_s=0.07), 5)
    assert [row.words for row in rows] == [NO_SOURCE, "waited for api:80, 2 requests"]
    assert split_rows(ToolTime(calls=1, server_s=0.0), 5) == []


def test_a_wait_for_a_timer_is_one_row() -> None:
    timer = DependencyWait(kind="timer", name="timer", requests=0, time_s=0.1)
    rows = split_rows(ToolTime(calls=1, server_s=0.1, dependencies=[timer]), 5)
    assert [(row.kind, row.words) for row in rows] == [("dependency", "waited for a timer")]


def test_lines_name_the_file_below_the_working_directory() -> None:
    line = LineTime(file="tools/weather.py", line=13, function="f", callee="get", running_s=0.05, waiting_s=0.0)
    short = line.model_copy(update={"running_s": 1e-5})
    assert [row.words for row in line_rows(tool_time(lines=[line, short]), 5)] == ["tools/weather.py:13 f → get"]


def test_paths_are_relative_where_they_can_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    project, home = tmp_path / "home" / "project", tmp_path / "home"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    assert source_path(f"{project}/tools/weather.py") == "tools/weather.py"
    assert source_path(f"{home}/other.py") == "~/other.py"
    assert source_path(f"{project}-2/weather.py") == "~/project-2/weather.py"
    assert source_path("/srv/weather.py") == "/srv/weather.py"
    assert with_source_path({"file": f"{project}/a.py", "line": 1}) == {"file": "a.py", "line": 1}
    assert with_source_path({"requests": 2}) == {"requests": 2}
    monkeypatch.chdir("/")
    assert source_path("/srv/weather.py") == "/srv/weather.py"


def test_long_paths_lose_their_first_folders() -> None:
    assert path_words("~/a/b.py") == "~/a/b.py"
    long = path_words("/very/long" * 20 + "/tools/weather.py")
    assert long.startswith("…/")
    assert long.endswith("/tools/weather.py")
    assert len(long) <= LONGEST_PATH
    assert len(path_words("x" * 500)) == LONGEST_PATH


def test_a_file_of_an_installed_package_is_named_within_the_packages() -> None:
    assert path_words("/v/lib/python3.11/site-packages/httpx/_client.py") == "httpx/_client.py"
    assert path_words("/srv/node_modules/pg/node_modules/pg-pool/index.js") == "pg-pool/index.js"


def test_the_flame_graph_of_a_real_run_fills_its_call() -> None:
    run = Run.load(RUN)
    [case] = [case for case in run.cases if case.inside is not None]
    assert case.inside is not None
    [shown] = insides_of(run)
    assert shown.flame is not None
    assert outermost_s(shown.flame) == pytest.approx(case.inside.server_s, rel=1e-3)
    assert {"own", "library", "interpreter", "dependency"} <= set(shown.flame.kinds)
    assert any(place.startswith("weather.py:") for place in shown.flame.places)
    assert not any(path.startswith("/") for path in [*shown.flame.places, *(line.words for line in shown.lines)])
    assert len(RUN.read_bytes()) < 300_000


def test_the_page_shows_sums_where_calls_overlapped() -> None:
    sums = InsideSums(
        calls=200,
        stretch_s=2.0,
        running_s=0.01,
        dependencies=[DependencyWait(kind="database", name="redis", requests=2.0, time_s=0.04)],
        packages=[PackageTime(package="httpx", time_s=0.008)],
        lines=[LineTime(file="weather.py", line=7, function="forecast", running_s=0.009, waiting_s=0.0)],
        samples=400,
        added=AddedTime(plain_s=0.02, ratio=1.1, low=1.05, high=1.15, rounds=5),
    )
    case = Case(subject=Subject(sdk="s"), target="t", operation="call", tool="f", inside_sums=sums)
    [shown] = insides_of(Run.load(RUN).model_copy(update={"kind": "load", "cases": [case]}))
    assert shown.title == "Inside f under load"
    assert [row.share for row in shown.parts] == [share(0.008, 0.01), ""]
    assert shown.whole_s == max(row.time_s for row in [*shown.parts, *shown.lines])
    assert "Calls overlap" in shown.about[0]
    assert sums.added is not None
    assert shown.about[1:] == [BARS, added_words(sums.added)]
    assert shown.flame is None


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1.12, 1.05, 1.2, ", and 12 % more with it: 95 % interval +5 % to +20 %."),
        (0.66, 0.53, 0.84, ", and 34 % less with it: 95 % interval −47 % to −16 %."),
        (1.02, 0.9, 1.1, ", and 2 % more with it. These rounds do not show"),
        (0.998, 0.9, 1.1, ", and as long with it. These rounds do not show"),
        (0.9, None, None, ", and 10 % less with it, by too few rounds for an interval."),
    ],
)
def test_the_added_time_says_whether_calls_take_more_or_less(
    ratio: float, low: float | None, high: float | None, words: str
) -> None:
    said = added_words(AddedTime(plain_s=0.02, ratio=ratio, low=low, high=high, rounds=5))
    assert f"{duration(0.02)} without looking inside{words}" in said


def test_fewer_rounds_are_told_with_the_reason() -> None:
    added = AddedTime(plain_s=0.02, ratio=1.1, rounds=2)
    assert "fewer rounds" not in added_words(added)
    slow = added_words(added.model_copy(update={"slow_start_s": 6.5}))
    assert slow.startswith(added_words(added))
    assert f"takes {duration(6.5)} to start" in slow
    assert "--trials" in slow


@pytest.mark.parametrize(
    "flame",
    [
        {"parents": [5], "frames": [1]},
        {"parents": [0, 2], "frames": [1, 1]},
        {"parents": [0], "frames": [2]},
        {"parents": [0], "frames": [1], "files": [9]},
        {"parents": [0], "frames": [1], "origins": []},
        {"parents": [0] * 5_000, "frames": [1] * 5_000, "running_s": [-1.0] * 5_000, "waiting_s": [0.0] * 5_000},
    ],
)
def test_a_tree_that_no_release_writes_is_cut(flame: dict[str, object]) -> None:
    sound = {
        "paths": ["a.py"],
        "origins": ["own"],
        "functions": ["f"],
        "files": [0],
        "lines": [1],
        "running_s": [1.0, 1.0],
        "waiting_s": [0.0, 0.0],
    }
    [shown] = insides_of(run_with(tool_time(flame=FlameGraph.model_validate({**sound, **flame}))))
    assert shown.flame is not None
    lists = (shown.flame.parents, shown.flame.frames, shown.flame.running_s, shown.flame.waiting_s)
    assert len({len(one) for one in lists}) == 1
    assert len(shown.flame.parents) <= 4_002
    assert all(parent <= number for number, parent in enumerate(shown.flame.parents))
    assert all(frame < len(shown.flame.names) for frame in shown.flame.frames)


def test_a_call_has_its_lanes() -> None:
    span = DependencySpan(pattern="GET /now\x1b", from_ms=1.0, to_ms=31.0)
    lane = DependencyLane(kind="http", name="api:80", spans=[span] * 120, left_out=7)
    waterfall = Waterfall(
        trial=0, total_ms=50.0, exchanges=[WaterfallExchange(exchange=1, label="x")], dependencies=[lane] * 20
    )
    [case] = page_of(run_with(tool_time(), waterfall)).cases
    assert case.call is not None
    assert len(case.call.lanes) == 12
    shown = case.call.lanes[0]
    assert (shown.name, shown.note) == ("api:80", "127 requests, 27 not drawn")
    assert (len(shown.bars), shown.bars[0]) == (100, ("GET /now", 1.0, 31.0))
