"""The outcome of a load: merging, thresholds, sentences and exported metrics."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_fd_to_metric_families
from rich.console import Console

from mcpace.lab.load import outcome_to_case
from mcpace.lab.load.engine_outcome import Histogram
from mcpace.lab.load.gate import check_threshold
from mcpace.lab.load.histogram import combine_histograms, histogram_latencies, merge_buckets, quantile_seconds
from mcpace.lab.load.plan import HttpTarget
from mcpace.lab.load.thresholds import parse_threshold
from mcpace.report.metrics import figures, otlp, prometheus
from mcpace.report.model.load import LoadSecond, LoadWorker
from mcpace.report.model.run import Case, Run
from mcpace.report.page import html
from mcpace.report.terminal.print_run import lines, print_run
from mcpace.report.verdict import verdict
from mcpace.report.words.load import model_words, turning_points, worker_remark
from support.otlp_collector import LIMIT_S, run_collector, stand_in_collector

RUN = Path(__file__).parents[2] / "fixtures" / "runs" / "load.json"
EVIL = "<script>alert(1)</script>[bold red]x[/] \x1b]0;own\x07\u202egnp"


def load() -> Run:
    return Run.load(RUN)


def case() -> Case:
    [found] = load().cases
    return found


# --- histograms ---


def buckets(values: list[int]) -> list[tuple[int, int]]:
    return merge_buckets([[(value, 1)] for value in values])


@given(st.lists(st.lists(st.integers(1, 10**12), max_size=40), min_size=1, max_size=4), st.floats(0.001, 1.0))
def test_percentiles_of_merged_histograms_are_those_of_all_samples(parts: list[list[int]], share: float) -> None:
    everything = [value for part in parts for value in part]
    found = quantile_seconds(merge_buckets(buckets(part) for part in parts), share)
    if not everything:
        assert found is None
    else:
        assert found == pytest.approx(numpy.quantile(everything, share, method="inverted_cdf") / 1e9)


def test_several_distributions_are_one_of_all_samples() -> None:
    def of(values: list[int]) -> Histogram:
        # Percentiles are left out, because they must not be averaged.
        seconds = [value / 1e9 for value in values]
        mean_s = sum(seconds) / len(seconds)
        return Histogram(
            count=len(values), mean_s=mean_s, min_s=min(seconds), max_s=max(seconds), buckets=buckets(values)
        )

    one, other = [10**6] * 90, [10**9] * 10
    found = histogram_latencies(combine_histograms([of(one), Histogram(), of(other)]))
    assert found is not None
    assert (found.count, found.min, found.max) == (100, 0.001, 1.0)
    assert found.mean == pytest.approx(0.1009)
    assert (found.p50, found.p90, found.p99) == (0.001, 0.001, 1.0)


# --- thresholds ---


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("p99<50ms", True),
        ("p99<30ms", False),
        ("echo:p99<31ms", True),
        ("search_products:p99<30ms", False),
        ("errors<0.1%", False),
        ("errors<1%", True),
        ("errors<=128", True),
        ("errors<128", False),
        ("rps>6399", True),
        ("echo:rps>6399", False),
        ("initialize:p50<30ms", True),
        ("delete:p50<30ms", False),  # nothing was measured of it
    ],
)
def test_a_load_is_held_against_thresholds(text: str, met: bool) -> None:
    assert check_threshold(parse_threshold(text), case()).met is met


def test_a_load_of_nothing_meets_no_limit_of_latency() -> None:
    empty = case()
    for operation in (empty.by_tool or {}).values():
        operation.latency_s, operation.count, operation.ok = None, 0, 0
    held = check_threshold(parse_threshold("p99<50ms"), empty)
    assert (held.met, held.actual) == (False, None)
    assert check_threshold(parse_threshold("errors<1%"), empty).met is False


# --- words ---


def second(number: int, ok: int, errors: int, p50_s: float | None) -> LoadSecond:
    return LoadSecond(at_s=number, warm_up=False, users=1, intended=ok, ok=ok, errors=errors, p50_s=p50_s)


def test_the_course_is_told_where_it_turns() -> None:
    steady = [second(number, 100, 0, 0.002) for number in range(8)]
    assert turning_points(steady) == []
    assert turning_points([*steady, second(8, 0, 9, None), second(9, 0, 9, None), second(10, 0, 9, None)]) == [
        "Errors began in second 8.",
        "No call succeeded after second 7.",
    ]
    assert turning_points([*steady[:4], second(4, 90, 3, 0.002), *steady[:4]]) == ["All errors fell into second 4."]
    slow = [second(number, 1, 0, 0.2) for number in range(8, 12)]
    assert turning_points([*steady, *slow]) == [
        "From second 8 on it was 100× slower: p50 200\u00a0ms after 2.00\u00a0ms."
    ]


@pytest.mark.parametrize(
    ("ended", "intended", "failed", "said"),
    [
        ("stopped", 0, 0, "was stopped before anything was measured."),
        ("done", 0, 0, "No call of echo at x was due in 10.0\u00a0s."),
        ("done", 5, 0, "finished before the load did."),
        ("done", 5, 5, "Every call of echo at x failed: 5 errors."),
    ],
)
def test_why_nothing_was_measured_is_told(ended: str, intended: int, failed: int, said: str) -> None:
    run = load()
    [empty] = run.cases
    assert empty.load
    empty.target, empty.tool, empty.latency_s, empty.errors, empty.seconds = "x", "echo", None, failed, []
    empty.load.ended, empty.load.intended, empty.load.dropped, empty.load.thresholds = ended, intended, intended, []
    told = verdict(run)
    assert said in told
    assert (f"{intended} of {intended} calls that were due never started." in told) == (intended > 0)


def test_a_generator_that_was_the_limit_is_named() -> None:
    run = load()
    assert "generator-limited" not in verdict(run)
    [limited] = run.cases
    assert limited.load
    limited.saturated, limited.load.engine.saturated, limited.load.engine.reason = True, True, "threads-busy"
    assert "generator-limited" in verdict(run)
    assert "generator-limited" in html.render(run)


def test_peers_cannot_write_to_terminal_or_page() -> None:
    run = load()
    [hostile] = run.cases
    assert hostile.load
    assert hostile.by_tool
    hostile.target, hostile.load.failure, hostile.load.engine.reason = EVIL, EVIL, EVIL
    hostile.saturated = True
    for operation in hostile.by_tool.values():
        operation.name, operation.first_error, operation.errors = EVIL, EVIL, {EVIL: 3}
    for threshold in hostile.load.thresholds:
        threshold.text = EVIL
    file = io.StringIO()
    print_run(run, Console(file=file, width=100, force_terminal=False))
    text = file.getvalue()
    assert "alert(1)" in text
    assert "[bold red]" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    page = html.render(run)
    assert "<script>alert" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize("stages", [2, "to", [3], [{"to": "x"}], {"to": 4}])
def test_stages_that_are_none_are_left_out(stages: object) -> None:
    """A saved run may contain any text."""
    assert model_words({"kind": "open", "rate": "fast", "stages": stages}) == "0 calls/s due (constant)"
    assert model_words({"vus": 5, "stages": [{"to": 10}, {"to": 1}]}) == "5 → 10 → 1 users"


def test_a_very_long_load_stays_small() -> None:
    run = load()
    [long] = run.cases
    assert long.seconds
    long.seconds = [one.model_copy(update={"at_s": float(number)}) for number, one in enumerate(long.seconds * 4000)]
    assert len(html.render(run)) < 600_000
    file = io.StringIO()
    print_run(run, Console(file=file, width=80, force_terminal=False))
    assert all(len(line) <= 80 for line in file.getvalue().splitlines())


def test_other_runs_say_nothing_of_load() -> None:
    other = Run.load(RUN.with_name("measure.json"))
    assert "throughput_rps" not in other.to_json()
    assert Run.from_json(load().to_json()) == load()


# --- metrics ---


def test_prometheus_reads_what_is_written(tmp_path: Path) -> None:
    prometheus.write(load(), tmp_path / "load.prom")
    with (tmp_path / "load.prom").open() as file:
        families = {family.name: family for family in text_fd_to_metric_families(file)}
    target = "http://127.0.0.1:8000/mcp"
    requests = {sample.labels["operation"]: sample.value for sample in families["mcpace_load_requests"].samples}
    assert requests == {"echo": 50_000, "search_products": 14_000, "initialize": 50}
    [timeouts] = [one for one in families["mcpace_load_errors"].samples if one.labels["error"] == "timeout"]
    assert (timeouts.value, timeouts.labels["target"]) == (4, target)
    echo = [one for one in families["mcpace_load_latency_seconds"].samples if one.labels["operation"] == "echo"]
    below = [one.value for one in echo if one.name.endswith("_bucket")]
    assert below == sorted(below)
    assert below[-1] == 50_000
    [count] = [one.value for one in echo if one.name.endswith("_count")]
    [total] = [one.value for one in echo if one.name.endswith("_sum")]
    told = (case().by_tool or {})["echo"].latency_s
    assert told is not None
    assert (count, total) == (50_000, pytest.approx(told.mean * 50_000))


def test_fine_buckets_are_put_together_without_loss() -> None:
    fine = [(number * 1000, number % 7 + 1) for number in range(1, 1001)]
    bounds, counts = figures.merge_buckets(fine)
    assert len(bounds) <= figures.MOST_BOUNDS
    assert sum(counts) == sum(count for _, count in fine)
    for bound, below in zip(bounds, numpy.cumsum(counts), strict=True):
        assert below == sum(count for value, count in fine if value / 1e9 <= bound)


def test_a_real_collector_takes_finished_histograms(tmp_path: Path) -> None:
    with run_collector(tmp_path) as collector:
        assert otlp.send(load(), f"http://127.0.0.1:{collector.port}/v1/metrics")
        until = time.monotonic() + LIMIT_S
        while not (points := collector.points("mcpace_load_latency_seconds")):
            assert time.monotonic() < until, collector.log.read_text()
            time.sleep(0.05)
        text = collector.log.read_text()
    told = {point.attributes["operation"]: point.facts for point in points}
    assert {name: facts["Count"] for name, facts in told.items()} == {
        "echo": "50000", "search_products": "14000", "initialize": "50",
    }  # fmt: skip
    assert "service.name: Str(mcpace-load)" in text
    echo = text[text.index("Str(echo)", text.index("Name: mcpace_load_latency_seconds")) :].split(
        "HistogramDataPoints"
    )[0]
    counts = [int(count) for count in re.findall(r"^Buckets #\d+, Count: (\d+)$", echo, re.MULTILINE)]
    assert sum(counts) == 50_000
    assert len(counts) == len(re.findall(r"^ExplicitBounds #\d+: ", echo, re.MULTILINE)) + 1
    assert re.search(r"Name: mcpace_load_requests\n.*\n.*\n.*DataType: Sum\n +-> IsMonotonic: true", text)
    assert re.search(r"Name: mcpace_load_throughput\n(.*\n)+?Value: 5000\.0", text)


def test_a_collector_that_refuses_is_told_of() -> None:
    with stand_in_collector(status=400) as (url, taken):
        assert not otlp.send(load(), url)
    assert taken


@pytest.mark.parametrize(("took_ms", "reused", "pointed"), [(44, 90, True), (44, 10, False), (20, 90, False)])
def test_calls_near_forty_milliseconds_point_to_the_experiment(took_ms: int, reused: int, pointed: bool) -> None:
    buckets = [(took_ms * 1_000_000 + quantile * 100_000, 10) for quantile in range(10)]
    operations = [SimpleNamespace(service=SimpleNamespace(buckets=buckets))]
    outcome = SimpleNamespace(connections=SimpleNamespace(opened=10, reused_requests=reused))
    plan = SimpleNamespace(target=HttpTarget("http://127.0.0.1/mcp"))
    share = outcome_to_case._acknowledgement_share(cast(Any, plan), cast(Any, outcome), cast(Any, operations))
    assert (share > 0) is pointed
    run = load()
    assert run.cases[0].load
    run.cases[0].load.acknowledgement_share = share
    assert (f"mcpace explain {run.cases[0].target} can tell" in verdict(run)) is pointed


def test_a_narrow_table_keeps_its_columns_apart() -> None:
    run = load()
    for one in (run.cases[0].by_tool or {}).values():
        assert one.latency_s
        one.latency_s = one.latency_s.model_copy(update={"p50": 89e-6, "max": 0.19438, "p99": 0.014819})
    text = "\n".join(line.plain for line in lines(run, 80, coloured=False))
    [row] = [line for line in text.splitlines() if line.startswith("  echo ")]
    assert row.split()[-2:] == ["14,819", "194,380"] and len(row) <= 80


# --- workers ---


def load_of_workers() -> Run:
    """The fixture, made by three workers, of which one was lost and one took no part."""
    run = load()
    facts = run.cases[0].load
    assert facts is not None
    done = {"state": "done", "time_offset_s": 0.0012, "uncertainty_s": 0.0004, "start_skew_s": 0.0001}
    lost = {"state": "lost", "counted_s": 3.0, "reason": f"it ended. {EVIL}", "missing_share": 0.2}
    lost |= {"time_offset_s": -3.0, "uncertainty_s": 0.021, "start_skew_s": -0.002}
    refused = {"state": "refused", "reason": "it has mcpace 9.9.9", "missing_share": 1 / 3}
    facts.workers = [
        LoadWorker.model_validate({"place": place, "threads": 1, "share": 1 / 3, "calls": 1234, **members})
        for place, members in (("local 1", done), (f"ssh {EVIL}", lost), ("ssh old", refused))
    ]
    return run


def test_the_report_shows_workers_and_the_missing_part() -> None:
    run = load_of_workers()
    told = " ".join(" ".join(line.plain.split()) for line in lines(run, 140, coloured=False))
    assert "local 1 33 % +1.20 ms +100 µs 1,234 0 0 % –" in told
    assert "−3.00 s −2.00 ms 1,234 0 – 20 %" in told
    assert "lost, counted up to second 3: it ended." in told
    assert "no part: it has mcpace 9.9.9" in told
    assert "both within 21.0 ms" in told
    assert "The workers started within 2.10 ms of each other." in told
    assert "53 % of the load is missing, the part of ssh" in " ".join(verdict(run).split())
    shown = html.render(run)
    assert "<script>alert" not in shown.partition('id="data"')[2]
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("members", "remark"),
    [
        ({}, ""),
        ({"report_late_s": 0.9}, ""),
        (
            {"report_late_s": 3.21, "saturated": True},
            "generator-limited; its counts arrived up to 3.21 s late: it or its network stood still",
        ),
        ({"never_started": 278}, "278 due calls never started"),
    ],
)
def test_a_worker_that_stood_still_is_remarked_on(members: dict[str, Any], remark: str) -> None:
    worker = LoadWorker.model_validate({"place": "ssh a", "state": "done", "threads": 1, "share": 1.0, **members})
    assert " ".join(worker_remark(worker).split()) == remark


def test_a_load_whose_workers_made_all_of_it_misses_nothing() -> None:
    run = load_of_workers()
    facts = run.cases[0].load
    assert facts is not None
    facts.workers = facts.workers[:1]
    assert "missing" not in verdict(run)
    facts.workers = []
    assert not any("Workers" in line.plain for line in lines(run, 140, coloured=False))
