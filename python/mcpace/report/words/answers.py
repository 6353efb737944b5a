"""The verdict on answers to questions about many recordings: the most important row of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpace.report.model.answer import Answer, Cell
from mcpace.report.model.run import Run
from mcpace.report.words.quantities import clean, count, duration, join_words, times

LONGEST_NAME = 60
NAMED = 3
"""Most names in a sentence."""
NANOS = 1e9

Row = Mapping[str, Cell]


def sentences(run: Run) -> list[str]:
    """A sentence for each answer, and one on recordings that could not be read."""
    found = [sentence for answer in run.answers if (sentence := _sentence(answer))]
    if run.unread:
        names = join_words([clean(one.name, LONGEST_NAME) for one in run.unread[:NAMED]])
        more = f" and {len(run.unread) - NAMED:,} more" if len(run.unread) > NAMED else ""
        found.append(f"{count(len(run.unread), 'recording')} could not be read: {names}{more}.")
    return found or ["Nothing was asked."]


def _sentence(answer: Answer) -> str:
    rows = rows_of(answer)
    more = "More than " if answer.is_cut else ""
    match answer.question:
        case "latency":
            return _latency_sentence(rows)
        case "slower":
            return _slower_sentence(rows)
        case "findings" | "costs":
            return _cost_sentence(rows)
        case "dependencies":
            return _dependency_sentence(rows)
        case "recordings":
            calls = sum(value for row in rows if isinstance(value := row.get("calls"), int))
            cut_off = sum(row.get("is_cut_off") is True for row in rows)
            ends = f" {count(cut_off, 'recording was', 'recordings were')} cut off." if cut_off else ""
            return f"{more}{count(len(rows), 'recording')} with {count(calls, 'call')} explained.{ends}"
        case "sql":
            return f"{more}{count(len(rows), 'row')}."


def _latency_sentence(rows: Sequence[Row]) -> str:
    if not rows:
        return "The tables have no requests in this time."
    row = rows[0]
    return f"Most time is in {name_of(row)}: {_number(row, 'requests', 'request')}, p50 {_time(row, 'p50_ns')}."


def _slower_sentence(rows: Sequence[Row]) -> str:
    slower = {name_of(row): row for row in reversed(rows) if row.get("verdict") == "slower"}
    compared = len({name_of(row) for row in rows if row.get("low") is not None})
    if not rows:
        return "No request has replies both before and since."
    if not slower:
        return f"Of {count(compared, 'kind')} of request that could be compared, none got slower by 5 % or more."
    names = list(reversed(slower))
    named = [
        f"{name} ({clean(slower[name].get('percentile'), 8)} {ratio_words(slower[name])})" for name in names[:NAMED]
    ]
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return f"Of {count(compared, 'kind')} of request, {len(names):,} got slower: {join_words([*named, *more])}."


def _cost_sentence(rows: Sequence[Row]) -> str:
    if not rows:
        return "No cause of lost time was found."
    row = rows[0]
    calls = row.get("calls")
    where = f" in {count(calls, 'call')}" if isinstance(calls, int) and calls > 0 else ""
    return f"The costliest finding is {clean(row.get('code'), LONGEST_NAME)}: {cost_words(row)}{where}."


def rows_of(answer: Answer) -> list[Row]:
    """The rows of an answer, by column."""
    return [dict(zip(answer.columns, row, strict=False)) for row in answer.rows]


def name_of(row: Row, columns: Sequence[str] = ("source", "request")) -> str:
    """The name of a row: ``github search_issues``."""
    parts = [clean(row[column], LONGEST_NAME) for column in columns if row.get(column) is not None]
    return clean(" ".join(parts), LONGEST_NAME)


def cost_words(row: Mapping[str, Cell]) -> str:
    """The time that a finding costs; the requests where it costs no time."""
    requests = row.get("requests")
    if not row.get("time_ns") and isinstance(requests, int) and requests > 0:
        return count(requests, "request")
    return _time(row, "time_ns")


def _dependency_sentence(rows: Sequence[Row]) -> str:
    if not rows:
        return "No dependency was seen."
    name = clean(rows[0].get("name"), LONGEST_NAME)
    return f"Tools wait longest for {name}: {_time(rows[0], 'waiting_ns')}."


def _number(row: Row, column: str, one: str) -> str:
    value = row.get(column)
    return count(value, one) if isinstance(value, int | float) else f"– {one}s"


def _time(row: Row, column: str) -> str:
    value = row.get(column)
    return duration(value / NANOS) if isinstance(value, int | float) else "–"


def ratio_words(row: Mapping[str, Cell]) -> str:
    """The ratio of a percentile since and before; a dash where there is none."""
    value = row.get("ratio")
    return times(value) if isinstance(value, int | float) and value > 0 else "–"
