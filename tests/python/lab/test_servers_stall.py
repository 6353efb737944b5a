"""The demo's stall is found, confirmed and reported for a server with two writes, and for no other."""

from __future__ import annotations

from rich.cells import cell_len

from mcpace.lab import delayed_ack_demo
from mcpace.lab.machine import new_run
from mcpace.lab.progress import Silent
from mcpace.report.groups import targets
from mcpace.report.model.run import Case, Subject, Summary
from mcpace.report.page import html
from mcpace.report.terminal import print_run


def test_two_writes_stall_and_one_does_not() -> None:
    split, whole = delayed_ack_demo.variant_cases(Silent())
    assert [finding.confidence for finding in split.findings] == ["confirmed"]
    assert whole.findings == []
    assert (split.errors, whole.errors) == (0, 0)
    run = new_run("demo", {})
    timed = Case(
        subject=Subject(sdk="python", version="1"), target="profile:simple", operation="call", trials_s=[1.0, 1.0],
        summary=Summary.of([1.0, 1.0]),
    )  # fmt: skip
    run.cases = [timed, split, whole]
    assert targets(run) == ["profile:simple"], "cases of load are no trials"
    for width in (50, 80, 120):
        told = [line.plain for line in print_run.lines(run, width, coloured=False)]
        below = told[next(number for number, line in enumerate(told) if line.startswith("Under load")) :]
        assert all(cell_len(line) <= width for line in below), width
        assert any("delayed-ack" in line for line in below)
    lines = "\n".join(line.plain for line in print_run.lines(run, 80, coloured=False))
    assert "Under load" in lines
    assert "delayed-ack" in lines
    assert "SSE in one write" in lines
    assert "delayed acknowledgement" in html.render(run)
