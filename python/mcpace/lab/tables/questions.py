"""Questions to the exported tables, answered by DuckDB.

Design constraint: memory does not grow with the number of exchanges. Durations are counted by value, rounded to three
significant digits, and percentiles are read from these counts: a percentile differs from that of all samples by at
most 0.5 %.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from mcpace.lab.statistics.cluster_quantile import (
    CONFIDENCE,
    Cluster,
    Distribution,
    quantile_interval,
    ratio_interval,
)
from mcpace.lab.statistics.sequential_ratio import NOTABLE
from mcpace.lab.tables.read import Tables
from mcpace.report.model.answer import Answer, Cell, Question
from mcpace.report.model.base import LARGEST

MOST_ROWS = 10_000
"""Rows of an answer that a Run holds."""
MOST_BYTES = 16 * 2**20
"""Characters of all texts of an answer together."""
LONGEST_CELL = 16_384
FEWEST_FOR_P99 = 100
"""Fewest replies whose 99th percentile is not simply the slowest."""
PERCENTILES = (50, 99)
NAMED = ("tools/call", "prompts/get")
"""Methods whose requests are told apart by name."""

Verdict = Literal["slower", "faster", "same", "unclear"]

REQUEST = f"CASE WHEN method IN {NAMED} THEN coalesce(name, method) ELSE method END"
STEP = "10 ** (floor(log10(duration_ns)) - 2)"
ROUNDED = f"CASE WHEN duration_ns < 1000 THEN duration_ns ELSE round(duration_ns / ({STEP})) * ({STEP}) END::BIGINT"
REPLIED = "method IS NOT NULL AND duration_ns > 0 AND NOT failed"


@dataclass(frozen=True)
class Scope:
    """The rows that a question is about."""

    since: datetime | None = None
    baseline: datetime | None = None
    """For ``slower``: start of the time before ``since`` that is compared with; ``None`` for all of it."""
    source: str | None = None

    def condition(self, begin: datetime | None) -> tuple[str, list[object]]:
        """A condition of SQL with its values. The day is that of a folder, so that no older file is opened."""
        conditions, values = ["true"], list[object]()
        if begin is not None:
            conditions += ["day >= ?", "started >= ?"]
            values += [str(begin.date()), begin]
        if self.source is not None:
            conditions.append("source = ?")
            values.append(self.source)
        return " AND ".join(conditions), values


def answer_latency(tables: Tables, scope: Scope) -> Answer:
    """Requests by server and tool: their number, failures and percentiles of the replies without an error."""
    condition, values = scope.condition(scope.since)
    ranks = ", ".join(
        f"min(duration) FILTER (upto >= ceil({percentile / 100} * replies - 1e-9)) AS p{percentile}_ns"
        for percentile in PERCENTILES
    )
    sql = f"""
        WITH chosen AS (
            SELECT source, {REQUEST} AS request, {ROUNDED} AS duration, duration_ns, {REPLIED} AS replied, failed
            FROM exchanges WHERE method IS NOT NULL AND {condition}
        ), counts AS (
            SELECT source, request, CASE WHEN replied THEN duration END AS duration, count(*) AS number,
                count(*) FILTER (failed) AS failed, sum(duration_ns) FILTER (replied) AS total
            FROM chosen GROUP BY ALL
        ), ranked AS (
            SELECT *, sum(number) FILTER (duration IS NOT NULL) OVER (one) AS replies,
                sum(number) FILTER (duration IS NOT NULL) OVER (one ORDER BY duration) AS upto
            FROM counts WINDOW one AS (PARTITION BY source, request)
        )
        SELECT source, request, sum(number) AS requests, sum(failed) AS failed, {ranks}, sum(total) AS total_ns,
            coalesce(any_value(replies), 0)
        FROM ranked GROUP BY source, request ORDER BY total_ns DESC NULLS LAST, source, request LIMIT {MOST_ROWS + 1}"""
    rows = [
        (*rest, p50, p99 if replies >= FEWEST_FOR_P99 else None, total)
        for *rest, p50, p99, total, replies in tables.rows(sql, values)
    ]
    columns = ["source", "request", "requests", "failed", "p50_ns", "p99_ns", "total_ns"]
    return make_answer("latency", columns, rows, scope.since)


def answer_slower(tables: Tables, scope: Scope) -> Answer:
    """Percentiles of the replies before and since ``scope.since``, and their ratios with intervals.

    The requests of one recording within one hour are a cluster (see :mod:`mcpace.lab.statistics.cluster_quantile`).
    The level of each interval is 95 %. A percentile is slower or faster where the interval excludes 1 and the
    ratio differs from 1 by at least 5 %.
    """
    assert scope.since is not None
    condition, values = scope.condition(scope.baseline)
    chosen = f"""
        SELECT source, {REQUEST} AS request, started >= ? AS is_since, {ROUNDED} AS duration, recording,
            date_trunc('hour', started) AS hour
        FROM exchanges WHERE {REPLIED} AND {condition}"""
    found: dict[tuple[str, str], _Sides] = {}
    sql = f"SELECT source, request, is_since, duration, count(*) FROM ({chosen}) GROUP BY ALL ORDER BY duration"
    for source, request, is_since, duration, number in tables.each(sql, [scope.since, *values]):
        sides = found.setdefault((source, request), _Sides(Distribution(), Distribution()))
        (sides.since if is_since else sides.before).add(duration, number)
    found = {name: sides for name, sides in found.items() if sides.before.count and sides.since.count}
    clusters = _clusters(tables, chosen, [scope.since, *values], found) if found else {}
    rows = []
    for name, sides in found.items():
        for percentile in PERCENTILES:
            if percentile == max(PERCENTILES) and min(sides.before.count, sides.since.count) < FEWEST_FOR_P99:
                continue
            rows.append((*name, f"p{percentile}", *_compare(sides, percentile, clusters.get(name, {}))))
    order: list[Verdict] = ["slower", "unclear", "same", "faster"]
    rows.sort(key=lambda row: (order.index(row[-1]), -(row[-4] or 0)))
    columns = ["source", "request", "percentile", "before", "since", "before_ns", "since_ns", "ratio", "low", "high"]
    made = make_answer("slower", [*columns, "verdict"], rows, scope.since)
    made.confidence = CONFIDENCE
    return made


@dataclass
class _Sides:
    """Durations before and since the moment."""

    before: Distribution
    since: Distribution


def _clusters(
    tables: Tables, chosen: str, values: Sequence[object], found: dict[tuple[str, str], _Sides]
) -> dict[tuple[str, str], dict[tuple[bool, int], list[Cluster]]]:
    """The clusters of each side and percentile, by server and request."""
    limits = ", ".join("(?, ?, ?, ?, ?)" for _ in range(2 * len(found)))
    wanted: list[object] = []
    for name, sides in found.items():
        for is_since, side in ((False, sides.before), (True, sides.since)):
            wanted += [*name, is_since, *(side.quantile(percentile / 100) for percentile in PERCENTILES)]
    sql = f"""
        SELECT source, request, is_since, count(*),
            {", ".join(f"count(*) FILTER (duration <= p{percentile})" for percentile in PERCENTILES)}
        FROM ({chosen}) JOIN (VALUES {limits}) AS limits (source, request, is_since, p50, p99)
        USING (source, request, is_since) GROUP BY source, request, is_since, recording, hour"""
    made: dict[tuple[str, str], dict[tuple[bool, int], list[Cluster]]] = {}
    for source, request, is_since, number, *below in tables.each(sql, [*values, *wanted]):
        of_request = made.setdefault((source, request), {})
        for percentile, within in zip(PERCENTILES, below, strict=True):
            of_request.setdefault((is_since, percentile), []).append((number, within))
    return made


def _compare(
    sides: _Sides, percentile: int, clusters: dict[tuple[bool, int], list[Cluster]]
) -> tuple[int, int, int, int, float, float | None, float | None, Verdict]:
    share = percentile / 100
    before, since = sides.before.quantile(share), sides.since.quantile(share)
    ratio = since / before
    intervals = [
        quantile_interval(side, share, clusters.get((is_since, percentile), []))
        for is_since, side in ((True, sides.since), (False, sides.before))
    ]
    known = ratio_interval(since, intervals[0], before, intervals[1]) if intervals[0] and intervals[1] else None
    low, high = known or (None, None)
    verdict: Verdict = "unclear"
    if low is not None and high is not None:
        if low > 1 and ratio >= 1 + NOTABLE:
            verdict = "slower"
        elif high < 1 and ratio <= 1 / (1 + NOTABLE):
            verdict = "faster"
        elif low >= 1 / (1 + NOTABLE) and high <= 1 + NOTABLE:
            verdict = "same"
    return sides.before.count, sides.since.count, before, since, ratio, low, high, verdict


def answer_findings(tables: Tables, scope: Scope) -> Answer:
    """Findings by code: the calls that pay for each, its cost in total and per call, and where it costs most."""
    condition, values = scope.condition(scope.since)
    sql = f"""
        WITH by_source AS (
            SELECT code, source, sum(time_ns) AS time, sum(requests) AS requests, sum(bytes) AS bytes,
                sum(calls) AS calls, sum(time_ns) FILTER (calls > 0) AS paid
            FROM findings WHERE {condition} GROUP BY code, source
        )
        SELECT code, any_value(recordings), sum(calls), sum(time), sum(paid) // nullif(sum(calls), 0), sum(requests),
            sum(bytes), arg_max(source, (time, requests))
        FROM by_source
        JOIN (SELECT code, count(DISTINCT recording) AS recordings FROM findings WHERE {condition} GROUP BY code)
        USING (code) GROUP BY code ORDER BY sum(time) DESC, sum(requests) DESC, code LIMIT {MOST_ROWS + 1}"""
    columns = ["code", "recordings", "calls", "time_ns", "per_call_ns", "requests", "bytes", "most_at"]
    return make_answer("findings", columns, tables.rows(sql, [*values, *values]), scope.since)


def answer_dependencies(tables: Tables, scope: Scope) -> Answer:
    """Dependencies by kind and name: the calls of the tools that wait for each, and the time that they wait."""
    condition, values = scope.condition(scope.since)
    sql = f"""
        SELECT kind, name, count(DISTINCT (source, tool)), sum(calls), sum(requests), sum(waiting_ns) AS waiting,
            waiting // nullif(sum(calls), 0), arg_max(concat(source, ' ', tool), waiting_ns)
        FROM dependencies WHERE {condition} GROUP BY kind, name ORDER BY waiting DESC, kind, name
        LIMIT {MOST_ROWS + 1}"""
    columns = ["kind", "name", "tools", "calls", "requests", "waiting_ns", "per_call_ns", "most_at"]
    return make_answer("dependencies", columns, tables.rows(sql, values), scope.since)


QUESTIONS: dict[str, Callable[[Tables, Scope], Answer]] = {
    "latency": answer_latency,
    "slower": answer_slower,
    "findings": answer_findings,
    "dependencies": answer_dependencies,
}
QUESTION_TABLES = {
    "latency": "exchanges",
    "slower": "exchanges",
    "findings": "findings",
    "dependencies": "dependencies",
}


def first_day(questions: Sequence[str], scope: Scope) -> date | None:
    """The first day that the questions are about; ``None`` for all days."""
    begin = scope.baseline if "slower" in questions else scope.since
    return None if begin is None else begin.date()


def answer_sql(tables: Tables, sql: str) -> Answer:
    """The rows of a user's statement, up to MOST_ROWS."""
    columns, rows = tables.select(sql)
    return make_answer("sql", columns, rows)


def make_answer(
    question: Question,
    columns: list[str],
    rows: Sequence[Sequence[Any]] | Iterator[Sequence[Any]],
    since: datetime | None = None,
) -> Answer:
    """An answer with as many rows as a Run holds."""
    kept: list[list[Cell]] = []
    room = MOST_BYTES
    is_cut = False
    for row in rows:
        cells = [plain_cell(value) for value in row]
        room -= sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(kept) == MOST_ROWS or room < 0:
            is_cut = True
            break
        kept.append(cells)
    began = "" if since is None else since.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Answer(question=question, columns=columns, rows=kept, is_cut=is_cut, since=began)


def plain_cell(value: Any) -> Cell:
    """A value of DuckDB as JSON has it. Numbers that are too large for a Run, and other types, become text."""
    match value:
        case None | bool():
            return value
        case int() | float() if -LARGEST <= value <= LARGEST:
            return value
        case Decimal() if abs(value) <= LARGEST:
            return float(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case dict() | list() | tuple():
            return json.dumps(_with_text_keys(value), default=str, ensure_ascii=False)[:LONGEST_CELL]
        case _:
            return str(value)[:LONGEST_CELL]


def _with_text_keys(value: Any) -> Any:
    """A nested value whose maps have texts as keys, as JSON needs."""
    match value:
        case dict():
            return {str(key): _with_text_keys(held) for key, held in value.items()}
        case list() | tuple():
            return [_with_text_keys(one) for one in value]
        case _:
            return value
