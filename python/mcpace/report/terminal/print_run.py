"""Prints a Run on a terminal: verdict, trials, findings, ledger.

Design constraint: a wide colour terminal, 80 columns and a pipe get the same lines; colour only repeats the text.
All text from a peer passes :func:`~mcpace.report.words.quantities.clean` and is put only into :class:`rich.text.Text`,
whose content is never interpreted as markup. :func:`lines` additionally replaces control characters in every line.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from mcpace.report.groups import targets
from mcpace.report.model.run import Run
from mcpace.report.terminal import (
    bisection,
    comparison,
    delayed_ack_demo,
    factors,
    findings,
    inside,
    layers,
    ledger,
    load,
    servers,
    tables,
    trials,
)
from mcpace.report.terminal.lines import blank, heading, replace_controls, wrap_paragraph
from mcpace.report.verdict import verdict
from mcpace.report.words import comparison as comparison_words
from mcpace.report.words.quantities import NO_BREAK, clean

NARROWEST, WIDEST = 60, 120
ASCII = str.maketrans(
    {"×": "x", "·": "-", "│": "|", "–": "-", "…": "~", "µ": "u", "−": "-", "─": "-", "▆": "#", "→": ">", "•": "-"}
    | dict(zip("▁▂▃▄▅▇█", "_.-=+@#", strict=True))
)


def print_run(run: Run, console: Console) -> None:
    """Prints the report of a run."""
    width = max(NARROWEST, min(console.width, WIDEST))
    coloured = console.color_system is not None and not console.no_color
    encodes_all = console.encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32", "cp65001")
    for line in lines(run, width, coloured=coloured):
        line.truncate(width, overflow="ellipsis")
        line.rstrip()
        line.plain = line.plain.replace(NO_BREAK, " ")
        if not encodes_all:
            line.plain = line.plain.translate(ASCII).encode("ascii", "replace").decode()
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def lines(run: Run, width: int, *, coloured: bool) -> Iterator[Text]:
    """The lines of the report. Without ``coloured``, characters distinguish the parts of the ledgers."""
    yield from map(replace_controls, _lines(run, width, coloured=coloured))


def _lines(run: Run, width: int, *, coloured: bool) -> Iterator[Text]:
    yield from _opening(run, width)
    yield from tables.lines(run, width)
    if run.kind == "load":
        yield from load.lines(run, width)
    elif run.kind == "servers":
        yield from servers.lines(run, width)
    elif run.kind == "layers":
        yield from layers.lines(run, width)
    elif run.kind in ("compare", "gate"):
        yield from comparison.lines(run, width)
    elif run.kind == "explain":
        yield from factors.lines(run, width)
    elif run.kind not in ("check", "gateway") and (run.kind != "recording" or any(case.trials_s for case in run.cases)):
        for target in targets(run):
            yield from trials.lines(run, target, width)
        yield from delayed_ack_demo.lines(run, width)
    if run.bisection:
        yield from bisection.lines(run, run.bisection, width)
    yield from findings.lines(run, width)
    if run.kind != "check":  # the parts of each start are in its tables
        yield from ledger.lines(run, width, coloured=coloured)
    yield from inside.lines(run, width)
    yield from _closing(run, width)


def _opening(run: Run, width: int) -> Iterator[Text]:
    if run.partial:
        yield from wrap_paragraph(
            "Interrupted: this is what was measured until then; the rest is missing.",
            width,
            style="bold yellow",
        )
        yield blank()
    yield from wrap_paragraph(verdict(run), width, style=_style(run))


def _style(run: Run) -> str:
    made = run.comparison
    if run.kind != "gate" or made is None or run.partial:
        return "bold"
    if made.red:
        return "bold red"
    return "bold green" if made.judged and not made.inconclusive else "bold yellow"


def _closing(run: Run, width: int) -> Iterator[Text]:
    machine = run.machine
    facts = [f"mcpace {run.mcpace}", run.kind, run.started]
    told = comparison_words.sides(run)
    yield blank()
    yield heading("", width)
    for name, what, where in told:
        yield from wrap_paragraph(
            f"{name}: {what}, {where.cores} cores, {clean(where.cpu, 60)}, {clean(where.system, 60)}",
            width,
            style="dim",
            hang=2,
        )
    if len(told) < 2:
        # The machine that compares two saved runs is irrelevant to both.
        facts += [f"{machine.cores} cores, {machine.cpu}", machine.system]
    yield from wrap_paragraph(" · ".join(clean(fact, 60) for fact in facts), width, style="dim")
