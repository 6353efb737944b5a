"""Any run that the schema accepts can be rendered in every format, and no text in it is executed or interpreted."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcpace.lab.compare.comparison import run_of
from mcpace.report.ci.annotations import github_annotations
from mcpace.report.ci.junit import junit
from mcpace.report.ci.markdown import markdown
from mcpace.report.ci.sarif import sarif
from mcpace.report.model.run import Run, RunFormatError
from mcpace.report.page.build import head, page_of
from mcpace.report.page.html import embedded_json
from mcpace.report.page.model import Shell
from mcpace.report.terminal.print_run import lines
from support.arbitrary_runs import KINDS, any_run

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
SEEDS = range(40)
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def invisible(text: str) -> list[str]:
    return [character for character in text if unicodedata.category(character) in INVISIBLE]


def texts(told: Any) -> Iterator[str]:
    match told:
        case str():
            yield told
        case list():
            for one in told:
                yield from texts(one)
        case dict():
            for name, one in told.items():
                yield from (name, *texts(one))


@pytest.mark.parametrize("kind", KINDS)
def test_any_run_is_shown_and_nothing_in_it_acts(kind: str) -> None:
    for seed in SEEDS:
        run = any_run(kind, seed)
        page = page_of(run)
        shown = page.model_dump_json()
        assert head(run).verdict[0], seed
        assert [text for text in texts(json.loads(shown)) if invisible(text)] == [], seed
        assert "<" not in embedded_json(Shell(view="run", page=page))
        for line in lines(run, 80, coloured=False):
            assert invisible(line.plain) == [], (seed, line.plain)
        assert not set(invisible(markdown(run))) - {"\n", "\u200b"}, seed
        assert_only_problems_are_commands(github_annotations(run), seed)
        assert invisible("".join(texts(json.loads(sarif(run))))) == [], seed
        if kind in ("compare", "gate"):
            ElementTree.fromstring(junit(run))


def assert_only_problems_are_commands(told: str, seed: int) -> None:
    for line in told.splitlines():
        assert line.startswith(("::error title=mcpace ", "::warning title=mcpace ", "::notice title=mcpace ")), seed
        assert invisible(line) == [] and len(line.split("::")[1].split("=")) <= 4, (seed, line)


@pytest.mark.parametrize("place", ["machine.memory_bytes", "machine.cores"])
def test_a_number_that_no_machine_holds_is_no_run(place: str) -> None:
    told = json.loads(any_run("clients", 0).to_json())
    outer, inner = place.split(".")
    told[outer][inner] = 10**400
    with pytest.raises(RunFormatError, match=inner):
        Run.from_json(json.dumps(told))


def test_nor_is_one_in_what_a_finding_or_an_option_holds() -> None:
    told = json.loads(any_run("clients", 0).to_json())
    for number in (10**400, -(10**30), 1e300):
        told["options"] = {"a": [{"b": number}]}
        with pytest.raises(RunFormatError, match="options"):
            Run.from_json(json.dumps(told))
    told["options"] = {"a": [{"b": 10**18, "c": -0.5, "d": True}]}
    assert Run.from_json(json.dumps(told)).options == told["options"]


@pytest.mark.parametrize("kind", KINDS)
def test_any_two_runs_are_compared(kind: str) -> None:
    for seed in range(20):
        first, second = any_run(kind, seed), any_run(kind, seed + 2)
        for base in (first, second):
            assert page_of(run_of(base, second, 0.05)).comparison, seed


def test_a_time_of_nothing_has_no_ratio() -> None:
    first, second = (Run.from_json((RUNS / "measure.json").read_text()) for _ in range(2))
    first.cases[0].trials_s = [5e-324] * 8
    second.cases[0].trials_s = [1.5] * 8
    for run in (run_of(first, second, 0.05), run_of(second, first, 0.05)):
        assert run.comparison
        row = run.comparison.attempts[0].rows[0]
        assert (row.ratio or 0.0, row.low) == (0.0, None) or row.ratio == pytest.approx(5e-324 / 1.5)
        assert page_of(run).comparison
