"""The page of the casebook, docs/casebook.md."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from case import FOLDER

from mcpace.report.words import findings

if TYPE_CHECKING:
    from run import Answer

HEAD = """# The casebook: public reports of slow MCP, and mcpace's answer

This page shows how often mcpace names the cause of a slow MCP program that somebody reported in public. Each entry
is one report. Small programs reproduce it with the packages that the report names, or imitate the reported program with
the MCP SDK. [findings.md](findings.md) explains the findings.

- `make casebook` runs each report twice through `mcpace record`: with the cause, and without it (the control).
- *named*: mcpace names one of the expected findings with the cause, and none of them in the control. Otherwise the
  report is *missed*.
- \\* marks a report for which a rule of mcpace was written. Such a report does not count for recall, which is the share
  of causes that mcpace names.
- For each other report, the expected finding was committed before the first run of the case.

The programs are in `casebook/NAME/`, and `make casebook CASE=NAME` runs one case.
[casebook/README.md](../casebook/README.md) describes the format.
"""


def page_of(answers: Sequence[Answer], summary: str, measured: date) -> str:
    """The page as Markdown. ``measured`` is the day of the answers."""
    parts = [HEAD, f"Answers of {measured.isoformat()}: {summary}\n"]
    for repository in sorted({answer.case.repository for answer in answers}, key=str.lower):
        parts.append(f"## {repository}\n")
        parts += [_entry(answer) for answer in answers if answer.case.repository == repository]
    reports = _not_reproduced()
    if reports:
        parts.append("## Reports that could not be reproduced\n")
        parts.append("\n".join(f"- <{url}>: {reason}" for url, reason in reports) + "\n")
    return "\n".join(parts)


def _entry(answer: Answer) -> str:
    case = answer.case
    mark = " \\*" if case.shaped_a_rule else ""
    number = str(case.report).rstrip("/").split("/")[-1]
    outcome = "named" if answer.is_right else "**missed**"
    lines = [
        f"### [{case.repository} #{number}]({case.report}){mark}: {outcome}\n",
        f"- Reported {case.reported}: {case.symptom}",
        f"- Cause according to the thread: {case.belief}",
        f"- Cause in the code: {case.cause}",
        f"- Expected: {_codes(case.expected)}. mcpace's answer: {_answer(answer)}.",
        f"- Control: {case.control['differs']}\n",
    ]
    return "\n".join(lines)


def _answer(answer: Answer) -> str:
    if answer.problem:
        return answer.words()
    named = [f"{findings.clause_for(code)} (`{code}`, confidence {how})" for code, how in answer.named.items()]
    wrong = sorted(set(answer.case.expected) & set(answer.control))
    also = f"; in the control, which does not have the cause, it names {_codes(wrong)}" if wrong else ""
    return ("; ".join(named) or "nothing") + also


def _codes(codes: Sequence[str]) -> str:
    return " or ".join(f"`{code}`" for code in codes)


def _not_reproduced() -> list[tuple[str, str]]:
    """URL and reason of each report in ``not-reproduced.toml``."""
    reports = tomllib.loads((FOLDER / "not-reproduced.toml").read_text(encoding="utf-8"))["report"]
    return sorted((report["url"], report["reason"]) for report in reports)
