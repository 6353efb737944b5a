"""Prints the trials at a target, one row for each subject: the cold trial, the warm trials, their mean, the change.

All figures of one operation have one unit, so that rows can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.groups import cases_at, operations, subjects
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.quantities import MILLISECONDS, Unit, clean, common_unit
from mcpace.report.words.standing import Standing, change_words, standing, state_words

STYLES = {Standing.MUCH_SLOWER: "bold red", Standing.MUCH_FASTER: "bold green", Standing.SAME: "dim"}
GAP = "  "
LONGEST_SUBJECT = 28
MOST_LINES = 10
"""Maximum number of lines for the trials of one case."""


def lines(run: Run, target: str, width: int) -> Iterator[Text]:
    """The trials at a target, in one block for each operation."""
    yield blank()
    yield heading(clean(target, width), width)
    several = len(subjects(run)) > 1
    for operation in operations(run, target):
        yield from _operation(cases_at(run, target, operation), operation, width, several)


@dataclass(frozen=True)
class _Columns:
    """Widths of the columns, in cells."""

    subject: int
    cold: int
    warm: int
    across: int
    """Number of warm trials in one line."""
    mean: int
    short: bool
    """Whether the change is printed in its short form."""


def _operation(cases: list[Case], operation: str, width: int, several: bool) -> Iterator[Text]:
    timed = [trial for case in cases for trial in case.trials_s]
    unit = common_unit(timed) if timed else MILLISECONDS
    columns = _columns(cases, unit, width, several)
    yield blank()
    yield _header(cases, unit, columns)
    for case in cases:
        if case.trials_s:
            yield from _row(case, unit, columns)
        yield from _state(case, width, columns)


def _columns(cases: list[Case], unit: Unit, width: int, several: bool) -> _Columns:
    labels = [clean(case.subject.label()) for case in cases]
    subject = min(max([cell_len(label) for label in [*labels, _title(cases)[2:]]] + [12]), LONGEST_SUBJECT)
    cold = _max_width([unit.figure(case.trials_s[0]) for case in cases if case.trials_s] + ["cold"])
    # A recording may have a million trials; only those that are shown determine the width.
    warm = _max_width([unit.figure(trial) for case in cases for trial in case.trials_s[1 : MOST_LINES * width]])
    mean = _max_width([_mean_figure(case, unit) for case in cases] + [f"mean {unit.name}"])
    count = max((len(case.trials_s) - 1 for case in cases), default=0)
    fixed = 2 + subject + len(GAP) + cold + 3 + len(GAP) + mean
    long, short = (max((cell_len(change_words(c.change, short=s)) for c in cases), default=0) for s in (False, True))
    room = width - fixed - (len(GAP) if several else 0)
    needed = max(count, 1) * (warm + 1) - 1
    is_short = needed + long > room
    available = room - (short if is_short else long)
    return _Columns(subject, cold, warm, max(1, min(max(count, 1), (available + 1) // (warm + 1))), mean, is_short)


def _header(cases: list[Case], unit: Unit, columns: _Columns) -> Text:
    line = Text(fit_cell(_title(cases), columns.subject + 2), style="bold")
    line.append(GAP + align_right("cold", columns.cold) + " │ ", style="dim not bold")
    line.append(fit_cell("warm", _warm_width(columns)), style="dim not bold")
    line.append(GAP + align_right(f"mean {unit.name}", columns.mean), style="dim not bold")
    against = next((case.change.against for case in cases if case.change), None)
    if against:
        line.append(f"{GAP}against {_release_name(clean(against, 24))}", style="dim not bold")
    return line


def _title(cases: list[Case]) -> str:
    """Title of the operation: ``later calls echo`` where sessions repeat it, because trials are later repetitions."""
    operation = next((case.operation for case in cases), "")
    tool = next((case.tool for case in cases if case.tool), None)
    repeated = any(case.first_s for case in cases)
    title = f"later {operation}s" if repeated else operation
    return f"{title} {clean(tool, 40)}" if tool else title


def _row(case: Case, unit: Unit, columns: _Columns) -> Iterator[Text]:
    line = Text("  " + fit_cell(clean(case.subject.label()), columns.subject) + GAP)
    line.append(align_right(unit.figure(case.trials_s[0]), columns.cold), style="dim")
    line.append(" │ ", style="dim")
    shown = case.trials_s[1 : 1 + MOST_LINES * columns.across]
    warm = [align_right(unit.figure(trial), columns.warm) for trial in shown]
    chunks = [warm[at : at + columns.across] for at in range(0, len(warm), columns.across)] or [[]]
    line.append(fit_cell(" ".join(chunks[0]), _warm_width(columns)))
    line.append(GAP + align_right(_mean_figure(case, unit), columns.mean), style="bold")
    now = standing(case.change)
    line.append(GAP + change_words(case.change, short=columns.short), style=STYLES.get(now, ""))
    yield line
    indent = " " * (2 + columns.subject + len(GAP) + columns.cold) + " │ "
    for chunk in chunks[1:]:
        yield Text(indent + " ".join(chunk))
    left_out = len(case.trials_s) - 1 - len(shown)
    if left_out > 0:
        yield Text(f"{indent}and {left_out} more in the run's file", style="dim")


def _state(case: Case, width: int, columns: _Columns) -> Iterator[Text]:
    """The state of an unsupported, failed or incomplete case, with the reason, below its row or instead of it."""
    state = state_words(case)
    if not state:
        return
    reason = clean(case.unsupported or case.error or (case.failures or [""])[0])
    text = f"{state}: {reason}" if reason else state
    style = "dim" if case.unsupported else "yellow"
    indent = 2 + columns.subject + len(GAP)
    first = True
    for line in wrap_paragraph(text, width, indent=indent, style=style):
        if first and not case.trials_s:
            line = Text("  " + fit_cell(clean(case.subject.label()), columns.subject) + GAP) + line[indent:]
        first = False
        yield line


def _mean_figure(case: Case, unit: Unit) -> str:
    return unit.figure(case.summary.mean_s) if case.summary else ""


def _warm_width(columns: _Columns) -> int:
    return max(columns.across * (columns.warm + 1) - 1, 4)


def _max_width(texts: list[str]) -> int:
    return max((cell_len(text) for text in texts), default=0)


def _release_name(label: str) -> str:
    """``python@1.11.0`` → ``1.11.0``, because the column is narrow, and the first row has the whole name."""
    return label.partition("@")[2] or label
