"""Prints tables. The first column gets the width that the other columns leave."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.run import Run
from mcpace.report.table import Table
from mcpace.report.tables import tables
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph

GAP = "  "
NARROWEST_NAME = 12
NARROWEST_REMARK = 34
"""Remarks of fewer cells would be read with difficulty."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """All tables of a run."""
    for table in tables(run):
        yield from _table(table, width)


def _table(table: Table, width: int) -> Iterator[Text]:
    yield blank()
    yield heading(table.title, width, table.where if width - cell_len(table.where) > cell_len(table.title) + 8 else "")
    if table.has_remarks:
        yield from _rows_with_remarks(table, width)
    else:
        yield from _rows(list(table.columns), [list(row) for row in table.rows], width)
    for note in table.notes:
        yield from wrap_paragraph(note, width, indent=len(GAP), style="dim")


def _rows_with_remarks(table: Table, width: int) -> Iterator[Text]:
    """Rows with the remark of each in the width that is left; in lines of its own where little width is left."""
    lines = list(_rows(list(table.columns[:-1]), [list(row[:-1]) for row in table.rows], width))
    used = max(cell_len(line.plain) for line in lines) + len(GAP)
    for line, remark in zip(lines, ["", *(row[-1] for row in table.rows)], strict=True):
        if width - used >= NARROWEST_REMARK:
            wrapped = list(wrap_paragraph(remark, width, indent=used))
            yield Text(line.plain.ljust(used), style=line.style) + (wrapped[0][used:] if wrapped else Text(""))
            yield from wrapped[1:]
        else:
            yield line
            yield from wrap_paragraph(remark, width, indent=2 * len(GAP), style="dim")


def _rows(columns: list[str], rows: list[list[str]], width: int) -> Iterator[Text]:
    across = list(zip(columns, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in across[1:]]
    room = width - sum(widths) - len(GAP) * (len(widths) + 1)
    name = max(NARROWEST_NAME, min(room, max(map(cell_len, across[0]))))
    for number, (first, *rest) in enumerate([columns, *rows]):
        cells = [align_right(cell, size) for cell, size in zip(rest, widths, strict=True)]
        yield Text(GAP + GAP.join([fit_cell(first, name), *cells]), style="" if number else "dim")
