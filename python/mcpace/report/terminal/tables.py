"""Prints tables. The first column gets the width that the other columns leave."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.run import Run
from mcpace.report.tables import Table, tables
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph

GAP = "  "
NARROWEST_NAME = 12


def lines(run: Run, width: int) -> Iterator[Text]:
    """All tables of a run."""
    for table in tables(run):
        yield from _table(table, width)


def _table(table: Table, width: int) -> Iterator[Text]:
    yield blank()
    yield heading(table.title, width, table.where if width - cell_len(table.where) > cell_len(table.title) + 8 else "")
    across = list(zip(table.columns, *table.rows, strict=True))
    widths = [max(map(cell_len, column)) for column in across[1:]]
    room = width - sum(widths) - len(GAP) * (len(widths) + 1)
    name = max(NARROWEST_NAME, min(room, max(map(cell_len, across[0]))))
    for number, (first, *rest) in enumerate([table.columns, *table.rows]):
        cells = [align_right(cell, size) for cell, size in zip(rest, widths, strict=True)]
        yield Text(GAP + GAP.join([fit_cell(first, name), *cells]), style="" if number else "dim")
    for note in table.notes:
        yield from wrap_paragraph(note, width, indent=len(GAP), style="dim")
