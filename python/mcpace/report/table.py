"""A table in words, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """A small table in words."""

    title: str
    columns: tuple[str, ...]
    """Headings. The first column contains the names of the rows."""
    rows: list[tuple[str, ...]]
    where: str = ""
    notes: list[str] = field(default_factory=list)
    has_remarks: bool = False
    """Whether the last column is a remark in words instead of a figure."""
    bar_column: int | None = None
    """The column whose figures the page draws as bars, too."""
    bars: list[float] = field(default_factory=list)
    """Length of each row's bar, as a share of the longest."""
