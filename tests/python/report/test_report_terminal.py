"""A run on a terminal, against checked-in text.

Set MCPACE_UPDATE_SNAPSHOTS=1 to write it anew, then read the difference.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from mcpace.report.model.run import Run
from mcpace.report.terminal.print_run import print_run

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
NAMES = sorted(path.stem for path in RUNS.glob("*.json"))
UPDATE = "MCPACE_UPDATE_SNAPSHOTS"


def printed(run: Run, width: int, *, colour: bool = False, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    console = Console(
        file=file, width=width, force_terminal=colour, color_system="256" if colour else None, legacy_windows=False
    )
    print_run(run, console)
    file.seek(0)
    return file.read()


def load(name: str) -> Run:
    return Run.load(RUNS / f"{name}.json")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 120])
def test_prints_as_before(name: str, width: int) -> None:
    snapshot = RUNS / f"{name}.{width}.txt"
    text = printed(load(name), width)
    if os.environ.get(UPDATE):
        snapshot.write_text(text)
    assert text == snapshot.read_text(), f"changed; if that is meant, run again with {UPDATE}=1 and read the difference"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80, 97, 120])
@pytest.mark.parametrize("colour", [False, True])
def test_stays_inside_the_width(name: str, width: int, colour: bool) -> None:
    for line in printed(load(name), width, colour=colour).splitlines():
        plain = line if not colour else _without_colour(line)
        assert cell_len(plain) <= width, plain
        assert plain == plain.rstrip()


def test_colour_adds_nothing_but_colour() -> None:
    plain, coloured = printed(load("clients"), 100), _without_colour(printed(load("clients"), 100, colour=True))
    trials = plain.index("Where the time went")
    assert coloured[:trials] == plain[:trials]


def test_peers_cannot_write_to_the_terminal() -> None:
    text = printed(load("hostile"), 100)
    assert "alert(1)" in text, "the fixture's attack is no longer shown at all: this test proves nothing"
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold red]" in text, "markup of a peer was read instead of shown"


def test_peers_cannot_colour_or_link() -> None:
    text = printed(load("hostile"), 100, colour=True)
    assert "\x1b]8;" not in text
    assert "\x1b]0;" not in text


def test_a_terminal_without_unicode_gets_all_of_it() -> None:
    text = printed(load("clients"), 80, encoding="ascii")
    assert "472x slower (447-498)" in text
    assert "?" not in text


def test_an_interrupted_run_says_so_first() -> None:
    assert printed(load("partial"), 80).startswith("Interrupted")


def test_an_empty_run_prints() -> None:
    run = load("measure")
    run.cases = []
    assert printed(run, 80).startswith("Nothing was measured.")


def test_many_trials_go_on_below() -> None:
    run = load("measure")
    case = run.cases[0]
    case.trials_s = [0.0123] * 41
    lines = printed(run, 80).splitlines()
    assert sum(line.count("12.3") for line in lines) >= 41


def test_very_many_trials_are_not_all_printed() -> None:
    run = load("measure")
    run.cases[0].trials_s = [0.0123] * 5000
    text = printed(run, 80)
    assert "more in the run's file" in text
    assert len(text.splitlines()) < 60


def test_the_longest_operation_is_told_from_its_subject() -> None:
    run = load("measure")
    case = next(case for case in run.cases if case.ledger_s)
    case.operation = "disconnect"
    row = next(line for line in printed(run, 100).splitlines() if line.startswith("  disconnect") and "%" in line)
    assert row.split()[:2] == ["disconnect", case.subject.label()]


def _without_colour(text: str) -> str:
    from rich.text import Text

    return "\n".join(Text.from_ansi(line).plain for line in text.split("\n"))
