"""Figures that servers take in turn, round after round, and a table of them with their ratios to the floor's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Row = dict[str, Any]
"""`case` and `name` of the row, `base`: the name of the row of the same case that it is compared with, `rounds`: the
values of each column, a list with a value for each round, and `note`: a remark, where there is one."""


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    key: str
    head: str
    scale: float = 1.0
    compared: bool = True


def in_turn(rounds: int, cases: Sequence[tuple[Row, Callable[[], dict[str, float]]]]) -> list[Row]:
    """Measures each case once in each round, so that the machine's drift hits all alike."""
    for row, _ in cases:
        row["rounds"] = {}
    for _ in range(rounds):
        for row, measure in cases:
            for key, value in measure().items():
                row["rounds"].setdefault(key, []).append(value)
    return [row for row, _ in cases]


def ratios(row: Row, rows: list[Row], key: str) -> list[float]:
    """Ratios of a row's figures to its base's, round by round; none where there is no such base."""
    base = next((other for other in rows if other["case"] == row["case"] and other["name"] == row["base"]), row)
    own, others = row["rounds"].get(key, []), base["rounds"].get(key, [])
    if base is row or len(own) != len(others):
        return []
    return [a / b for a, b in zip(own, others, strict=True) if b]


def find(rows: list[Row], case: str, name: str) -> Row | None:
    """The row of a case and a name."""
    return next((row for row in rows if (row["case"], row["name"]) == (case, name)), None)


def markdown(rows: list[Row], columns: Sequence[Column]) -> str:
    """The rows as a table."""
    heads = ["", "server", *(column.head for column in columns)]
    noted = any(row.get("note") for row in rows)
    lines = [[*heads, *["remark"] * noted], [*["---"] * 2, *["---:"] * len(columns), *["---"] * noted]]
    for row in rows:
        remark = [row.get("note") or ""] * noted
        lines.append([row["case"], row["name"], *(cell(row, rows, column) for column in columns), *remark])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(row: Row, rows: list[Row], column: Column) -> str:
    """A figure, with its ratio to the base's."""
    values = row["rounds"].get(column.key)
    if not values:
        return "–"
    text = number(median(values) * column.scale)
    compared = ratios(row, rows, column.key) if column.compared else []
    if not compared:
        return text
    low, middle, high = (number(value, 2) for value in (min(compared), median(compared), max(compared)))
    return f"{text} ({middle})" if len(compared) == 1 else f"{text} ({middle}; {low}–{high})"


def number(value: float, places: int = 3) -> str:
    """A number with at least so many significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{places}f}" if places == 2 and abs(value) >= 0.1 else f"{value:.{places}g}"


def check(value: float, to_reach: float, *, at_most: bool = False) -> dict[str, Any]:
    """A figure with a target."""
    reached = value <= to_reach if at_most else value >= to_reach
    return {"value": value, "to_reach": to_reach, "reached": reached, "at_most": at_most}
