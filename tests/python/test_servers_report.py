"""A comparison of servers as people read it: verdict, table, page; peers' text is cleaned."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from mcpace.report import html, terminal
from mcpace.report.run import Run
from mcpace.report.verdict import verdict
from mcpace.report.words_servers import cap_words, conditions

LATENCY = {
    "count": 9,
    "mean": 0.001,
    "min": 0.001,
    "p50": 0.00123,
    "p90": 0.002,
    "p99": 0.0345,
    "p999": 0.05,
    "max": 0.1,
}
ENGINE = {"threads": 1, "cpu_s": 1, "busy": 0.5, "late_p99_s": 0, "saturated": False}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "call", "count": 9, "ok": 9, "throughput_rps": 900.0, "latency_s": LATENCY, **more}


def case(mode: str, rps: float | None, **more: Any) -> dict[str, Any]:
    facts = {
        "sdk_version": "1.2", "revision": "2025-06-18", "cpu_s_per_call": 0.0000123, "checked": ["echo"], "rounds": [],
        "notes": ["Four \x1b[31mthreads"],
    }  # fmt: skip
    basis: dict[str, Any] = {"subject": {"sdk": "go", "version": "1.8.0", "mode": mode}, "target": "workload:shop"}
    measured = {
        "throughput_rps": rps, "errors": 0, "latency_s": LATENCY, "rss_bytes": 12_000_000, "saturated": False,
        "by_tool": {"echo": tool("echo"), "greet": tool("greet")}, "server": facts,
    }  # fmt: skip
    return {**basis, "operation": "call", **(measured if rps is not None else {}), **more}


def run_of(*cases: dict[str, Any], **common: Any) -> Run:
    servers = {
        "workload": "shop", "operations": {"echo": {}, "greet": {}}, "model": {"kind": "closed", "vus": 50},
        "revision": "2025-06-18", "session": "user", "state": "stateless", "rounds": 3, "round_s": 2.0,
        "round_warm_up_s": 1.0, "behind": {"redis-server": "7.0.15"},
        "cap": {"by": "affinity", "cpus": 1, "memory_bytes": 1 << 30, "memory_limited": False, "cores": [0],
                "load_cores": [1]},
        "floor": {"throughput_rps": 50_000.0, "engine_busy": 0.5, "saturated": False, "ceiling_rps": 100_000.0},
        **common,
    }  # fmt: skip
    machine = {"system": "", "architecture": "", "cpu": "", "cores": 2, "memory_bytes": 1, "python": ""}
    return Run.model_validate(
        {"schema": "mcpace.run/1", "kind": "servers", "started": "", "mcpace": "0", "machine": machine, "cases": cases,
         "servers": servers}
    )  # fmt: skip


RATIO = {"ratio": {"against": "go@1.8.0:json", "ratio": 0.25, "low": 0.2, "high": 0.3, "rounds": 3}, "sdk_version": "1"}
RUN = run_of(
    case("json", 4000.0),
    case("sse", 1000.0, errors=7, server=RATIO, by_tool={"echo": tool("echo", errors={"timeout": 7}, count=16)}),
    case("auto", None, error="double answers '63'"),
    case("old", None, unsupported="no such mode"),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_and_says_what_came_of_each(width: int) -> None:
    lines = [line.plain for line in terminal.lines(RUN, width, coloured=False)]
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
