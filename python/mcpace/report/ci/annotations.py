"""Annotations of GitHub Actions: one workflow command a problem, which shows it beside the line of a change."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from mcpace.report.ci.problems import Problem, problems
from mcpace.report.model.run import Run

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
IN_PROPERTIES, IN_MESSAGES = r"[%\r\n:,]", r"[%\r\n]"
MOST = 10
"""GitHub shows ten annotations of a level for each step."""


def github_annotations(run: Run, prefix: str = "") -> str:
    """The problems as workflow commands, one a line. ``prefix``: folder of the measurement in the repository."""
    counts = dict.fromkeys(COMMANDS, 0)
    lines = []
    for problem in problems(run):
        counts[problem.level] += 1
        if counts[problem.level] <= MOST:
            lines.append(_command(problem, prefix) + "\n")
    return "".join(lines)


def _command(problem: Problem, prefix: str) -> str:
    properties = {"title": f"mcpace {problem.code}: {problem.title}"}
    if problem.file is not None:
        properties |= {"file": str(PurePosixPath(prefix, problem.file)), "line": str(problem.line)}
    listed = ",".join(f"{name}={_escape(value, IN_PROPERTIES)}" for name, value in properties.items())
    return f"::{COMMANDS[problem.level]} {listed}::{_escape(problem.text, IN_MESSAGES)}"


def _escape(text: str, reserved: str) -> str:
    """Replaces the characters that end a part of a workflow command."""
    return re.sub(reserved, lambda match: f"%{ord(match[0]):02X}", text)
