"""Tables of the tokens of tools' results: in a recording, and on both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mcpace.report.model.comparison import Comparison
from mcpace.report.model.recording import MethodFacts
from mcpace.report.table import Table
from mcpace.report.words.quantities import clean, size, times
from mcpace.report.words.start import short_name
from mcpace.report.words.tokens import ENCODING

MOST_RESULTS = 40


def compared_result_tables(made: Comparison) -> Iterator[Table]:
    """Tokens of the results on both sides, a table for each target."""
    for target, group in groupby(made.results, key=lambda one: one.target):
        several = list(group)
        rows: list[tuple[str, ...]] = []
        for one in several[:MOST_RESULTS]:
            ratio = times(one.now_tokens / one.base_tokens) if one.base_tokens else "–"
            rows.append((clean(one.tool, 40), f"{one.base_tokens:,}", f"{one.now_tokens:,}", ratio))
        notes = [f"{len(several) - MOST_RESULTS} more tools."] if len(several) > MOST_RESULTS else []
        notes.append(f"Tokens of {ENCODING}: of the largest result of each tool, in a load of one result.")
        yield Table("Tokens of results", ("tool", "first", "second", "ratio"), rows, short_name(target), notes)


def recorded_result_tables(methods: Sequence[MethodFacts], most: int) -> Iterator[Table]:
    """Tokens and bytes of the results of each tool, the largest results first."""
    sized = [(one, one.result_tokens) for one in methods if one.result_tokens is not None]
    if not sized:
        return
    sized.sort(key=lambda one: (-(one[1].largest or 0), -(one[1].largest_bytes or 0)))
    rows: list[tuple[str, ...]] = []
    for method, found in sized[:most]:
        number = f"{found.results:,}" + (f", {found.cut:,} cut" if found.cut else "")
        bound = "≥ " if found.cut else ""
        counts = ["–" if value is None else f"{bound}{value:,}" for value in (found.median, found.largest)]
        sizes = ["–" if value is None else size(value) for value in (found.median_bytes, found.largest_bytes)]
        rows.append((clean(method.name or "", 40), number, f"{found.counted:,}", *counts, *sizes))
    columns = ("tool", "results", "counted", "tokens: p50", "max", "bytes: p50", "max")
    notes = [f"{len(sized) - most} more tools."] if len(sized) > most else []
    if any(found.cut for _, found in sized):
        notes.append(
            "Of results that the recorder cut, only the recorded part is counted: these tokens are lower bounds (≥). "
            "mcpace record --body-limit BYTES records more."
        )
    notes.append(f"Tokens of {ENCODING}; of each tool a sample of results is counted, the largest among them.")
    yield Table("Results of tools", columns, rows, notes=notes)
