"""Prints the ledgers: for each case one bar, whose parts add up to the mean of its warm trials.

A bar shows shares, not seconds. Beside a call that takes two seconds, one of four milliseconds would be invisible, and
the trials above already show the seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.groups import cases_at, operations, targets
from mcpace.report.model.run import Case, Ledger, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_indented
from mcpace.report.words.comparison import second_side_suffix
from mcpace.report.words.labels import server_notes
from mcpace.report.words.quantities import NO_BREAK, clean, count, duration, share

# Colours of the 256 palette that are distinguishable on dark and light grounds, and characters for output without
# colour.
LOOKS: dict[str, tuple[str, str]] = {
    "client.send": ("color(75)", "-"),
    "connect": ("color(134)", "+"),
    "request": ("color(37)", ">"),
    "server": ("color(172)", "S"),
    "response": ("color(70)", "<"),
    "client.receive": ("color(204)", "R"),
    "unaccounted": ("color(245)", "."),
}
BLOCK = "▆"
"""A block that is lower than its line, so that rows are separated."""
LONGEST_SUBJECT = 28
LEAST_OPERATION = 10
"""Minimum width of the column with the operations."""


def lines(run: Run, width: int, *, coloured: bool) -> Iterator[Text]:
    """The ledgers of all cases; no lines where there are none."""
    if not any(case.ledger_s for case in run.cases):
        return
    yield blank()
    beside = sum(case.load.beside or 0 for case in run.cases if case.load)
    mean = f"{count(beside, 'call')} beside the load" if beside else "share of the warm mean"
    yield heading(f"Where the time went{second_side_suffix(run)}", width, mean)
    yield from wrap_indented(_legend(coloured), width, 0, 0)
    split = [case for case in run.cases if case.ledger_s]
    subject = min(max(cell_len(clean(case.subject.label())) for case in split), LONGEST_SUBJECT)
    first = max(LEAST_OPERATION, *(len(case.operation) + 1 for case in split))
    for target in targets(run):
        yield blank()
        yield Text(clean(target, width), style="bold")
        for operation in operations(run, target):
            cases = [case for case in cases_at(run, target, operation) if case.ledger_s]
            for number, case in enumerate(cases):
                yield _row(case, fit_cell("" if number else operation, first), subject, width, coloured)
                for told in server_notes(case):
                    yield from wrap_indented(Text(told, style="dim"), width, first + 2, first + 2)


def _row(case: Case, operation: str, subject: int, width: int, coloured: bool) -> Text:
    assert case.ledger_s is not None
    total = case.ledger_s.total()
    line = Text(f"  {operation}")
    line.append(fit_cell(clean(case.subject.label()), subject) + "  ")
    line.append(align_right(duration(total), 8) + "  ", style="bold")
    dominant = max(case.ledger_s.parts().items(), key=lambda part: part[1])
    words = f"  {dominant[0]} {share(dominant[1], total)}"
    line.append(_bar(case.ledger_s, max(width - cell_len(line.plain) - 21, 10), coloured))
    line.append(words, style="" if dominant[1] >= total / 2 else "dim")
    return line


def _bar(ledger: Ledger, width: int, coloured: bool) -> Text:
    bar = Text()
    parts = ledger.parts()
    for name, cells in _divide_cells(list(parts.values()), width):
        key = list(parts)[name]
        colour, character = LOOKS[key]
        bar.append((BLOCK if coloured else character) * cells, style=colour if coloured else "")
    return bar


def _divide_cells(amounts: list[float], cells: int) -> Iterator[tuple[int, int]]:
    """Divides ``cells`` among the amounts by the largest-remainder method: index and number of cells of each."""
    whole = sum(max(amount, 0.0) for amount in amounts)
    if whole <= 0:
        return
    exact = [max(amount, 0.0) / whole * cells for amount in amounts]
    given = [int(share_) for share_ in exact]
    by_remainder = sorted(range(len(exact)), key=lambda at: exact[at] - given[at], reverse=True)
    for at in by_remainder[: cells - sum(given)]:
        given[at] += 1
    yield from enumerate(given)


def _legend(coloured: bool) -> Text:
    legend = Text()
    for name, (colour, character) in LOOKS.items():
        if legend.plain:
            legend.append(" ")
        mark = BLOCK if coloured else character
        # The no-break space keeps a mark and its name on one line.
        legend.append(mark, style=colour if coloured else "")
        legend.append(f"{NO_BREAK}{name} ", style="dim")
    return legend
