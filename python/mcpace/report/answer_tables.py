"""Tables of the answers to questions about many recordings. The name of a column decides how its values are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcpace.report.model.answer import Answer, Cell, Question
from mcpace.report.model.run import Run
from mcpace.report.table import Table
from mcpace.report.words.answers import LONGEST_NAME, NANOS, Row, cost_words, name_of, ratio_words, rows_of
from mcpace.report.words.quantities import clean, count, duration, ratio_figure, size

MOST_ON_TERMINAL, MOST_ON_PAGE = 20, 200
LONGEST_REASON = 200
LONGEST_CELL, SHORTEST_CELL = 40, 8
ROOM = 76
"""Width that the cells of a user's statement share."""

COST_HEADINGS = {
    "recordings": "recordings",
    "calls": "calls",
    "time_ns": "time",
    "per_call_ns": "a call",
    "requests": "requests",
}


@dataclass(frozen=True)
class Layout:
    """The columns of a question's table."""

    title: str
    names: tuple[str, ...]
    """Columns that together name a row."""
    headings: Mapping[str, str]
    notes: tuple[str, ...] = ()
    remark: str = ""
    """Words before the value of ``most_at``; empty for a table without remarks."""


LAYOUTS: dict[Question, Layout] = {
    "latency": Layout(
        "Requests by server and tool",
        ("source", "request"),
        {"requests": "requests", "failed": "failed", "p50_ns": "p50", "p99_ns": "p99", "total_ns": "in all"},
        ("Percentiles and sums are those of replies without an error. p99 needs 100 of them.",),
    ),
    "findings": Layout(
        "Findings by cost",
        ("code",),
        COST_HEADINGS,
        remark="most at",
    ),
    "dependencies": Layout(
        "Dependencies by the time that calls wait for them",
        ("kind", "name"),
        {"tools": "tools", "calls": "calls", "requests": "requests", "waiting_ns": "waiting", "per_call_ns": "a call"},
        remark="most in",
    ),
    "recordings": Layout(
        "Recordings",
        ("recording",),
        {"calls": "calls", "p50_ns": "p50", "code": "costliest finding", "cost": "cost"},
        ("p50 is that of the tool that is called most.",),
    ),
    "costs": Layout(
        "Findings of all recordings",
        ("code",),
        COST_HEADINGS,
        remark="most in",
    ),
}


def answer_tables(run: Run, *, is_page: bool) -> Iterator[Table]:
    """The tables of all answers."""
    most = MOST_ON_PAGE if is_page else MOST_ON_TERMINAL
    for answer in run.answers:
        if answer.question == "slower":
            yield from _slower_tables(answer, most)
        elif answer.question == "sql":
            yield _plain_table(answer, most)
        elif answer.rows:  # without rows, the verdict says so
            yield _table(answer, LAYOUTS[answer.question], most)
    if run.unread:
        unread: list[tuple[str, ...]] = [
            (clean(one.name, LONGEST_NAME), clean(one.reason, LONGEST_REASON)) for one in run.unread[:most]
        ]
        notes = [f"{count(len(run.unread) - most, 'more recording')} with --json."] if len(run.unread) > most else []
        yield Table("Recordings that could not be read", ("", ""), unread, notes=notes, has_remarks=True)


def since_words(answer: Answer) -> str:
    """``since 2026-11-20``; the time of day where it is not midnight."""
    day, _, time = clean(answer.since, 40).removesuffix("Z").partition("T")
    return f"since {day}{f' {time} UTC' if time.strip('0:') else ''}" if day else ""


def cell(column: str, value: Cell) -> str:
    """A value as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return clean(value, LONGEST_CELL)
    if column.endswith("_ns"):
        return duration(value / NANOS)
    if column.endswith("bytes"):
        return size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _table(answer: Answer, layout: Layout, most: int) -> Table:
    rows: list[tuple[str, ...]] = []
    for row in rows_of(answer)[:most]:
        cells = [cost_words(row) if column == "cost" else cell(column, row.get(column)) for column in layout.headings]
        place = clean(row.get("most_at") or "", LONGEST_NAME)
        remark = (f"{layout.remark} {place}" if place else "",) if layout.remark else ()
        rows.append((name_of(row, layout.names), *cells, *remark))
    columns = ("", *layout.headings.values(), *(("",) if layout.remark else ()))
    notes = [*layout.notes, *_more(answer, most)]
    return Table(layout.title, columns, rows, since_words(answer), notes, bool(layout.remark))


def _slower_tables(answer: Answer, most: int) -> Iterator[Table]:
    """A table for each percentile: before, since, the ratio and its interval."""
    found = rows_of(answer)
    for percentile in list(dict.fromkeys(cell("", row.get("percentile")) for row in found))[:4]:
        own = [row for row in found if cell("", row.get("percentile")) == percentile]
        rows: list[tuple[str, ...]] = []
        for row in own[:most]:
            figures = [cell(column, row.get(column)) for column in ("since", "before_ns", "since_ns")]
            changes = [ratio_words(row), _interval(row), cell("", row.get("verdict"))]
            rows.append((name_of(row), *figures, *changes))
        level = f"{100 * (answer.confidence or 0):.0f} % interval"
        columns = ("", "replies", "before", "since", "ratio", level, "")
        notes = _more(answer, most, len(own))
        if percentile == "p50":
            notes += [
                "Requests of one recording and hour count as one cluster; an interval needs five on each side. Of 40 "
                "requests that did not change, about one is named slower by chance."
            ]
        yield Table(f"{percentile} before and since", columns, rows, since_words(answer), notes)


def _interval(row: Row) -> str:
    low, high = row.get("low"), row.get("high")
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low <= 0 or high <= 0:
        return "–"
    return f"{ratio_figure(low)}–{ratio_figure(high)}"


def _plain_table(answer: Answer, most: int) -> Table:
    """The rows of a user's statement, with cells so short that a terminal of 80 columns shows them all."""
    longest = max(SHORTEST_CELL, min(LONGEST_CELL, ROOM // max(1, len(answer.columns)) - 2))
    rows: list[tuple[str, ...]] = []
    for row in answer.rows[:most]:
        cells = [clean(cell(name, value), longest) for name, value in zip(answer.columns, row, strict=False)]
        rows.append((*cells, *("" for _ in answer.columns[len(cells) :])))
    columns = tuple(clean(name, longest) for name in answer.columns)
    return Table("Rows", columns or ("",), rows if columns else [], notes=_more(answer, most))


def _more(answer: Answer, most: int, rows: int | None = None) -> list[str]:
    left_out = (len(answer.rows) if rows is None else rows) - most
    if answer.is_cut:
        return [f"More than {len(answer.rows):,} rows."]
    return [f"{count(left_out, 'more row')} with --csv or --json."] if left_out > 0 else []
