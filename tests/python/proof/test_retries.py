"""Retries of the tests that show findings: a missing finding is tried again, a false one fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.finding_scenes import TRIES, findings_by_code, patient


class RecordingWith:
    """A recording whose findings are given."""

    def __init__(self, codes: set[str]) -> None:
        self._codes = codes

    def findings(self) -> list[dict[str, Any]]:
        return [{"code": code} for code in self._codes]


def scene(*tries: set[str], expected: set[str]) -> tuple[Callable[[], None], list[int]]:
    """A test whose tries see these findings, one after another, and the number of its runs."""
    runs: list[int] = []

    @patient
    def test() -> None:
        runs.append(1)
        codes = tries[min(len(runs), len(tries)) - 1]
        assert findings_by_code(RecordingWith(codes)).keys() == expected  # type: ignore[arg-type]

    return test, runs


def test_a_finding_that_a_busy_machine_hid_is_tried_again() -> None:
    test, runs = scene(set(), set(), {"delayed-ack"}, expected={"delayed-ack"})
    test()
    assert len(runs) == 3


def test_a_false_finding_fails_though_a_later_try_is_silent() -> None:
    test, _ = scene({"delayed-ack"}, set(), expected=set())
    with pytest.raises(AssertionError, match="a try that failed named delayed-ack"):
        test()
    test, _ = scene({"delayed-ack", "redirects"}, {"delayed-ack"}, expected={"delayed-ack"})
    with pytest.raises(AssertionError, match="named redirects"):
        test()


def test_a_finding_that_never_shows_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    test, runs = scene(set(), expected={"delayed-ack"})
    with pytest.raises(AssertionError):
        test()
    assert len(runs) == TRIES
    monkeypatch.setattr("os.getloadavg", lambda: (1000.0, 0.0, 0.0))
    with pytest.raises(pytest.skip.Exception):
        test()
