"""Prints the probes of a bisection, in the order of the search."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.groups import order_operations
from mcpace.report.model.run import Bisection, Probe, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.quantities import clean, common_unit, count

STYLES = {"good": "bold green", "bad": "bold red", "untestable": "yellow"}
VERDICT = 10


def lines(run: Run, search: Bisection, width: int) -> Iterator[Text]:
    """The search as a table, then the criterion that separates good releases from bad ones."""
    yield blank()
    good, bad = clean(search.good, 20), clean(search.bad, 20)
    yield heading(f"Releases tried at {clean(search.target, 40)}", width, f"{clean(search.sdk, 20)} {good} .. {bad}")
    measured = [value for probe in search.probes for value in probe.medians_s.values()]
    unit = common_unit(measured)
    operations = order_operations(name for probe in search.probes for name in probe.medians_s)
    column = max([cell_len(f"{clean(name, 10)} {unit.name}") for name in operations] + [8])
    release = max([cell_len(clean(probe.version, 24)) for probe in search.probes] + [8])
    header = Text(fit_cell("  release", release + 4) + fit_cell("verdict", VERDICT), style="dim")
    for operation in operations:
        header.append("  " + align_right(f"{clean(operation, 10)} {unit.name}", column))
    yield header
    for probe in search.probes:
        line = Text("  " + fit_cell(clean(probe.version, 24), release) + "  ")
        line.append(fit_cell(probe.verdict, VERDICT), style=STYLES[probe.verdict])
        for operation in operations:
            value = probe.medians_s.get(operation)
            line.append("  " + align_right("" if value is None else unit.figure(value), column))
        yield from _with_reason(line, probe, release, width)
    for text in (
        f"{count(len(search.probes), 'release')} run out of {search.releases}, both ends included.",
        f"Told apart by {clean(search.criterion)}." if search.criterion else "",
    ):
        yield from wrap_paragraph(text, width, indent=2, style="dim")


def _with_reason(line: Text, probe: Probe, release: int, width: int) -> Iterator[Text]:
    if probe.verdict == "untestable" or any(probe.failed.values()):
        indent = 4 + release + VERDICT + 2
        reason = list(wrap_paragraph(clean(probe.reason), width, indent=indent, style=STYLES["untestable"]))
        if probe.medians_s and probe.failed:
            yield line
            yield from reason
            return
        line.rstrip()
        yield (
            Text.assemble(line, " " * max(indent - cell_len(line.plain), 1)) + reason[0][indent:] if reason else line
        )
        yield from reason[1:]
        return
    if probe.findings:
        line.append("  " + ", ".join(clean(code, 40) for code in probe.findings), style="dim")
    if cell_len(line.plain) > width:
        line.truncate(width, overflow="ellipsis")
    yield line
