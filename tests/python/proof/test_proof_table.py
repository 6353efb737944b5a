"""Every finding has a row that says how it is shown, every row names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mcpace import _core
from support.proofs import ROWS, Place, Row, table

ROOT = Path(__file__).parents[3]
BY_CODE = pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])


def test_every_finding_has_one_row_and_every_row_a_finding() -> None:
    assert sorted(row.code for row in ROWS) == sorted({entry["code"] for entry in _core.catalogue()["causes"]})


@BY_CODE
def test_a_row_names_tests_that_are_there(row: Row) -> None:
    places = [place for place in (row.hand, row.live, row.release, *row.in_other_languages) if place is not None]
    assert places
    for place in places:
        assert {place.shows, place.control} <= named_in(place), place


@BY_CODE
def test_what_shows_it_speaks_of_it(row: Row) -> None:
    """A row that was copied from another finding's names a test where this one's code doesn't occur."""
    assert row.words
    for place in (row.live, row.release, *row.in_other_languages):
        if place is not None:
            text = (ROOT / place.file).read_text()
            assert row.code in text or row.code in part(text, place.shows), place


def named_in(place: Place) -> set[str]:
    text = (ROOT / place.file).read_text()
    if place.file.endswith(".rs"):
        return set(re.findall(r"^#\[test\]\nfn (\w+)\(", text, re.M))
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def part(text: str, name: str) -> str:
    return text[text.index(f"def {name}") :].split("\ndef ")[0]


def test_the_document_has_the_table() -> None:
    assert table() in (ROOT / "docs" / "findings.md").read_text(), "docs/findings.md is stale: run make docs"
