"""Every command of docs/tutorials runs and prints what the page says (support/tutorial.py has the format)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.tutorial import FENCE, Command, Reader, difference, markers, steps

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md"))}


def rounds() -> list[object]:
    """A test for each page and marker of its blocks."""
    return [
        pytest.param(name, marker, marks=[getattr(pytest.mark, marker)] if marker else [])
        for name, page in PAGES.items()
        for marker in sorted(markers(page))
    ]


@pytest.mark.parametrize(("name", "marker"), rounds())
def test_a_page_can_be_followed(name: str, marker: str, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(PAGES[name], marker)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_block_of_commands_is_run(name: str) -> None:
    assert any(isinstance(step, Command) for step in steps(PAGES[name]))
    shells = [language for language, _, _ in FENCE.findall(PAGES[name]) if language in ("sh", "bash", "shell")]
    assert not shells, "write commands as console blocks, which are run"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_printed_lines_fit_a_terminal(name: str) -> None:
    long = [line for _, _, body in FENCE.findall(PAGES[name]) for line in body.splitlines() if len(line) > 80]
    assert not long


def test_other_words_are_a_difference_and_other_figures_are_not() -> None:
    page = "it took 2.05 ms, --SSR server 99 %\n…\nEvery request is sent twice\n"
    assert difference(page, "it took\n 11 µs, -SSSSSSR server 9 %\nmore\nEvery request is\n sent twice") is None
    assert difference(page, "it took 2.05 ms, --SSR client 99 %\nEvery request is sent twice") is not None
    assert difference(page, "Every request is sent twice\nit took 2.05 ms, --SSR server 99 %") is not None


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    fails = "```console\n$ python -c 'raise SystemExit(3)'\n```\n"
    with Reader(tmp_path) as reader, pytest.raises(AssertionError, match="exit code 3"):
        reader.follow(fails, "")
    with Reader(tmp_path) as reader:
        reader.follow(re.sub("\n```\n", "\n$ echo $?\n3\n```\n", fails), "")
