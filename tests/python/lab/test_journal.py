"""The journal of a run never touches a file that is not a journal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpace.lab import journal
from mcpace.lab.progress import Silent


def keep(out: Path) -> None:
    with journal.record_progress(Silent(), out, "clients", "a at b") as progress:
        progress.step("one")


def test_what_is_no_journal_stays_as_it_is(tmp_path: Path) -> None:
    out, mine = tmp_path / "run.json", tmp_path / "mine"
    mine.write_text("mine")
    place = journal.journal_path(out)
    place.symlink_to(mine)
    keep(out)
    journal.remove_journal(out)
    assert (mine.read_text(), place.is_symlink()) == ("mine", True)
    mine.unlink()
    keep(out)
    assert not mine.exists()
    place.unlink()
    place.write_text("a file of the user's")
    keep(out)
    journal.remove_journal(out)
    assert place.read_text() == "a file of the user's"


def test_a_pipe_in_its_place_holds_nobody_up(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    os.mkfifo(journal.journal_path(out))
    keep(out)
    journal.remove_journal(out)
    assert journal.journal_path(out).is_fifo()


def test_the_journal_of_another_run_that_goes_on_is_left_to_it(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with journal.record_progress(Silent(), out, "clients", "the first") as progress:
        with journal.record_progress(Silent(), out, "clients", "the second"):
            pass
        journal.remove_journal(out)
        progress.step("on")
        assert journal.journal_path(out).read_text().count("\n") == 2
        assert "the first" in journal.journal_path(out).read_text()
    # One that was killed has left its journal: it is written over.
    with journal.record_progress(Silent(), out, "clients", "the third"):
        assert "the third" in journal.journal_path(out).read_text()
        assert "the first" not in journal.journal_path(out).read_text()
    journal.remove_journal(out)
    assert not journal.journal_path(out).exists()


def test_an_experiment_that_fails_leaves_none(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with pytest.raises(ValueError, match="failed"), journal.record_progress(Silent(), out, "clients", "x"):
        raise ValueError("failed")
    assert list(tmp_path.iterdir()) == []
