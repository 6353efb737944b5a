"""The report on a comparison of servers: verdict, table, page, and cleaning of peers' text."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mcpace.report.model.run import Case, Subject
from mcpace.report.model.servers import RateRatio, ServerFacts
from mcpace.report.page import html
from mcpace.report.terminal import print_run
from mcpace.report.verdict import verdict
from mcpace.report.words import servers
from mcpace.report.words.servers import cap_words, conditions
from support.servers_run import LATENCY, RUN, case, run_of


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_and_says_what_came_of_each(width: int) -> None:
    lines = [line.plain for line in print_run.lines(RUN, width, coloured=False)]
    text = "\n".join(lines)
    rows = [line for line in lines if line.startswith("  go@")]
    assert all(cell_len(line) <= width for line in rows[:4]) or width < 80
    assert any("4,000" in row and "go@1.8.0:json" in row for row in rows)
    assert "0.25×" in text
    assert ("(0.20 to 0.30)" in text) == (width >= 104)
    assert "failed: double answers '63'" in text
    assert "unsupported: no such mode" in text
    assert "\x1b" not in text


def test_the_verdict_names_the_best_failures_and_what_is_missing() -> None:
    told = verdict(RUN)
    assert "go@1.8.0:json did most, 4,000 calls/s: 4.0× what go@1.8.0:sse did" in told
    assert "Calls failed at go@1.8.0:sse (7)." in told
    assert "1 server could not be measured: go@1.8.0:auto." in told
    assert verdict(run_of()) == "No server could be measured."


def test_at_a_given_rate_latency_is_what_tells_servers_apart() -> None:
    slow = {**LATENCY, "p99": 0.5}
    model = {"kind": "open", "rate": 1000.0}
    told = verdict(run_of(case("json", 1000.0), case("sse", 1000.0, latency_s=slow), model=model))
    assert "99 % of calls took up to 34.5 ms with go@1.8.0:json and 500 ms with go@1.8.0:sse" in told.replace(
        "\xa0", " "
    )


def test_what_ran_is_said_exactly() -> None:
    text = " ".join(conditions(RUN)).replace("\xa0", " ")
    for words in ("50 users", "3 rounds of 2.00 s", "2025-06-18", "a session a user", "redis-server 7.0.15", "50,000",
                  "about 100,000/s", "no control groups here", "1 other"):  # fmt: skip
        assert words in text, words
    assert RUN.servers is not None
    group = RUN.servers.cap.model_copy(update={"by": "cgroup", "memory_limited": True})
    assert "1.1 GB of memory, by a control group" in cap_words(group).replace("\xa0", " ")


def test_what_was_only_suspected_is_not_said_as_a_fact() -> None:
    finding = {
        "code": "delayed-ack", "severity": "high", "confidence": "medium", "confidence_reason": "experiment-not-made",
        "cost_s": 0.04, "calls": 9, "of_calls": 9, "context": {}, "disproof": "acknowledge-at-once", "advice": "",
    }  # fmt: skip
    told = verdict(run_of(case("sse", 10.0, findings=[finding])))
    assert "look as if they waited for delayed TCP acknowledgements" in told
    told = verdict(run_of(case("sse", 10.0, findings=[{**finding, "confidence": "confirmed"}])))
    assert "wait for delayed TCP acknowledgements: it is the sockets' setting" in told


def test_an_interrupted_comparison_blames_no_server_for_its_missing_turn() -> None:
    run = run_of(case("json", 10.0), case("sse", None), case("auto", None, error="died"))
    assert "2 servers could not be measured" in verdict(run)
    run.partial = True
    told = verdict(run)
    assert "1 server could not be measured: go@1.8.0:auto." in told
    assert "1 server had no turn before the end." in told
    early = run_of(case("json", None), case("sse", None))
    early.partial = True
    assert verdict(early) == "No server had a turn before the end."


def test_the_page_has_every_server_tool_and_condition() -> None:
    page = html.render(RUN)
    for words in ("go@1.8.0:json", "4000.0", "unsupported: no such mode", "double answers '63'", "greet",
                  "floor: a server that does nothing", "redis-server 7.0.15"):  # fmt: skip
        assert words in page, words
    assert "\x1b" not in page


def test_the_headline_has_the_ratio_that_the_table_has() -> None:
    def measured(sdk: str, rps: float, ratio: float | None) -> Case:
        facts = ServerFacts(ratio=RateRatio(against="a", ratio=ratio, rounds=3) if ratio else None)
        return Case(subject=Subject(sdk=sdk), target="echo", operation="call", throughput_rps=rps, server=facts)

    # The ratio of the totals is 1.17, that of the paired rounds 1.04.
    assert servers._throughput_ratio(measured("b", 1170, 1.04), measured("a", 1000, None)) == 1.04
    assert servers._throughput_ratio(measured("a", 1170, None), measured("b", 1000, 0.5)) == 2
    assert servers._throughput_ratio(measured("c", 900, 3.0), measured("b", 100, 1.5)) == 2
    assert servers._throughput_ratio(measured("c", 900, None), measured("b", 300, None)) == 3
