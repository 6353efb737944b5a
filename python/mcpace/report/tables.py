"""Tables for both the terminal and the page: the waits of a session, and the requests of a recorded client.

A cell is readable text that contains figures of the run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpace.report.groups import targets
from mcpace.report.model.ladder import Ladder
from mcpace.report.model.run import Case, Run
from mcpace.report.words import ladder, limits
from mcpace.report.words.quantities import clean, count, duration, size
from mcpace.report.words.start import short_name

BYTES_PER_TOKEN = 4
"""Assumed bytes a token. Tokenizers differ, and schemas are mostly ASCII, so the report calls the number an
estimate."""
MOST_METHODS = 40


@dataclass(frozen=True)
class Table:
    """A small table in words."""

    title: str
    columns: tuple[str, ...]
    """Headings. The first column contains the names of the rows."""
    rows: list[tuple[str, ...]]
    where: str = ""
    notes: list[str] = field(default_factory=list)


def tables(run: Run) -> list[Table]:
    """All tables of a run."""
    if run.kind == "recording":
        return list(_method_table(run))
    if run.comparison is not None:
        return []
    if run.kind == "limits":
        return [_limits_table(run)]
    if run.ladder is not None:
        return [_ladder_table(run, run.ladder)]
    return [table for target in targets(run) if (table := _session_table(run, target)) is not None]


def listing_words(case: Case) -> str:
    """``The listing of 13 tools is 7.7 kB of JSON, about 1,900 tokens of a model's context (an estimate).``"""
    if case.listing_bytes is None:
        return ""
    tools = f" of {count(case.listing_tools, 'tool')}" if case.listing_tools is not None else ""
    tokens = f"{tokens_of(case.listing_bytes):,}"
    return (
        f"The listing{tools} is {size(case.listing_bytes)} of JSON, about {tokens} tokens of a model's context (an "
        f"estimate, {BYTES_PER_TOKEN} bytes a token)."
    )


def tokens_of(size_bytes: int) -> int:
    """An estimate of a text's tokens, to two digits."""
    return int(float(f"{size_bytes / BYTES_PER_TOKEN:.2g}"))


def _session_table(run: Run, target: str) -> Table | None:
    """The table of a session's waits: its start, the first list and call, and the later ones."""
    cases = [case for case in run.cases if case.target == target]
    if not any(case.first_s for case in cases) or run.kind == "explain":
        return None
    starts = any(case.starts_process for case in cases)
    columns = ("start-up" if starts else "connect", "first list", "later lists", "first call", "later calls")
    rows: list[tuple[str, ...]] = []
    for label in dict.fromkeys(case.subject.label() for case in cases):
        own = {case.operation: case for case in cases if case.subject.label() == label}
        connect, listing, call = own.get("connect"), own.get("list"), own.get("call")
        cells = (
            _later_median(connect),
            _first_median(listing),
            _later_median(listing),
            _first_median(call),
            _later_median(call),
        )
        rows.append((clean(label, 28), *cells))
    notes = [words for case in cases if (words := listing_words(case))][:1]
    return Table("What a session waits for", ("medians", *columns), rows, short_name(target), notes)


def _ladder_table(run: Run, made: Ladder) -> Table:
    added = {layer.code: layer.seconds for layer in made.layers if layer.code in ladder.LAYERS}
    rows: list[tuple[str, ...]] = []
    for rung in made.rungs:
        layer = ladder.LAYER_OF.get(rung.code, "")
        median = "–" if rung.median_s is None else duration(rung.median_s)
        rows.append(
            (
                ladder.rung_words(rung),
                median,
                f"{len(rung.samples_s):,}",
                duration(added[layer]) if layer in added else "",
                ladder.LAYERS[layer].name if layer in added else "",
            )
        )
    where = short_name(run.cases[0].target) if run.cases else ""
    return Table(
        "Where a call's time is", ("request", "median", "requests", "adds", "layer"), rows, where, ladder.notes(made)
    )


def _limits_table(run: Run) -> Table:
    layers = tuple(limits.LAYERS)
    rows: list[tuple[str, ...]] = []
    for client in run.limits:
        found = {facts.layer: limits.cell(facts) for facts in client.layers}
        rows.append((clean(client.subject, 28), *(found.get(layer, "–") for layer in layers)))
    return Table("When the client gives up", ("client", *layers), rows, notes=limits.notes(run.limits))


def _first_median(case: Case | None) -> str:
    return duration(statistics.median(case.first_s)) if case is not None and case.first_s else "–"


def _later_median(case: Case | None) -> str:
    return duration(case.summary.median_s) if case is not None and case.summary is not None else "–"


def _method_table(run: Run) -> Iterator[Table]:
    facts = run.recording
    if facts is None or not (facts.methods or facts.starts_s):
        return
    is_watched = any(one.processor_s is not None for one in facts.methods)
    empty = ("",) * (3 if is_watched else 2)
    rows: list[tuple[str, ...]] = []
    if facts.starts_s:
        median, slowest = statistics.median(facts.starts_s), max(facts.starts_s)
        rows.append(("start of the server", f"{len(facts.starts_s):,}", duration(median), duration(slowest), *empty))
    for one in facts.methods[:MOST_METHODS]:
        name = clean(f"{one.method} {one.name}" if one.name else one.method, 60)
        values = (one.median_s, one.slowest_s, *((one.processor_s,) if is_watched else ()))
        times = [duration(value) if value is not None else "–" for value in values]
        failed = one.requests - one.succeeded
        number = f"{one.requests:,}" + (f", {failed:,} failed" if failed else "")
        rows.append((name, number, *times, size(one.request_bytes), size(one.reply_bytes)))
    columns = ("method", "requests", "median", "slowest", *(("processor",) if is_watched else ()), "sent", "received")
    notes = [f"{len(facts.methods) - MOST_METHODS} more methods."] if len(facts.methods) > MOST_METHODS else []
    yield Table("What the client asked", columns, rows, notes=notes)
