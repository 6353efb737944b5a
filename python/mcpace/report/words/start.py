"""The sentence on a server's start-up: the time from the start of its process to its first answer.

A start-up is paid once a session, so it is never reported as a cost of a call.
"""

from __future__ import annotations

import shlex

from mcpace.report.model.run import Case, Run
from mcpace.report.words.quantities import clean, duration

LONGEST_NAME = 60
PLAIN_RUNNERS = ("python", "python3", "node", "bash", "sh")
"""Interpreters, whose names are less informative than the file that they run."""


def sentences(run: Run) -> list[str]:
    """``mcp-server-time takes 1.13 s to start.``, for each target whose process was started."""
    started = [case for case in run.cases if case.starts_process and case.summary is not None]
    several = len({case.subject.label() for case in started}) > 1
    return [_sentence(case, several=several) for case in started]


def short_name(target: str) -> str:
    """A target's name for sentences; for a command, the file name of its program."""
    if not target.startswith("stdio:"):
        return clean(target, LONGEST_NAME)
    try:
        words = shlex.split(target.removeprefix("stdio:"))
    except ValueError:
        return clean(target, LONGEST_NAME)
    names = [word.rsplit("/", 1)[-1] for word in words if not word.startswith("-")]
    plain = len(names) > 1 and names[0].rstrip(".0123456789") in PLAIN_RUNNERS
    return clean(names[plain] if names else target, LONGEST_NAME)


def _sentence(case: Case, *, several: bool) -> str:
    assert case.summary is not None, "only cases with figures are told"
    typical, first = case.summary.median_s, case.summary.first_s
    who = f" with {clean(case.subject.label(), LONGEST_NAME)}" if several else ""
    cold = f", {duration(first)} the first time" if first > COLD * typical else ""
    return f"{short_name(case.target)} takes {duration(typical)} to start{who}{cold}."


COLD = 2.0
"""The sentence mentions the first start where it takes at least this many times as long as a typical one, because of a
download or a cold disk."""
