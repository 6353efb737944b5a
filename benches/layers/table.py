"""Writes the document of a run as Markdown, without knowledge of the measurement."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def table(document: dict[str, Any]) -> str:
    """All tables that have rows."""
    rows: list[Row] = document["rows"]
    introspected = [row for row in rows if "requests_per_token" in row]
    served = [row for row in rows if row["layer"] == "served"]
    layers = [row for row in rows if row not in introspected and row not in served]
    parts = [_layers(layers), _served(served), *map(_introspected, introspected), _targets(document["targets"])]
    return "\n\n".join([*filter(None, parts), _machine(document)])


def _layers(rows: list[Row]) -> str:
    """Microseconds."""
    if not rows:
        return ""
    lines = ["| time of a call, in µs | `direct` | `handler` | `in-process` | `socket` |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(row["name"] for row in rows):
        cells = [_shown(row) for row in rows if row["name"] == name]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _served(rows: list[Row]) -> str:
    if not rows:
        return ""
    lines = [
        f"| {rows[0]['users']} users, one process | requests a second, median | slowest and fastest turn |",
        "|---|---|---|",
    ]
    for row in rows:
        turns = f"{1 / row['high_s']:,.0f}–{1 / row['low_s']:,.0f}"
        lines.append(f"| {row['name']}, {row['by']} | {row['requests_per_s']:,.0f} | {turns} |")
    return "\n".join(lines)


def _introspected(row: Row) -> str:
    return (
        f"Introspection: {row['calls']:,} calls on {row['connections']} connections with {row['tokens']:,} tokens, "
        f"over {row['lifetimes']} lifetimes of a cached answer, made {row['requests']:,} requests to the issuer. The "
        f"first call with a token took {row['first_median_s'] * 1e3:,.0f} ms; the issuer answers after "
        f"{row['answer_s'] * 1e3:g} ms."
    )


def _targets(targets: list[Row]) -> str:
    lines = ["| figure | target | measured |", "|---|---|---|"]
    for one in targets:
        limit = f"≤ {_figure(one['at_most'], one)}" if "at_most" in one else f"≥ {_figure(one['at_least'], one)}"
        missed = "" if one["met"] else " (missed)"
        lines.append(f"| {one['what']} | {limit} | {_figure(one['actual'], one, 1)}{missed} |")
    return "\n".join(lines) if targets else ""


def _figure(value: float, target: Row, digits: int | None = None) -> str:
    """A figure in the unit of the target; measured figures have more digits."""
    if target["unit"] == "requests":
        return f"{value:g}"
    scaled, unit = (value * 1e6, "µs") if target["unit"] == "s" else (value, "×")
    # A ratio near 1 needs another digit.
    more = 1 if unit == "×" and scaled < 10 else 0
    return f"{scaled:g} {unit}" if digits is None else f"{scaled:,.{digits + more}f} {unit}"


def _machine(document: dict[str, Any]) -> str:
    machine = document["machine"]
    return (
        f"Times are medians of {document['turns']} turns of {document['batches_a_turn']} batches; the quartiles are "
        f"in brackets. Each turn of the load took {document['load_s_a_turn']:g} s. Measured at {document['measured']} "
        f"on {machine['cores']} cores{', kept awake for the layers' if document['cores_kept_awake'] else ''} "
        f"({machine['cpu']}), with Python {document['python']}."
    )


def _shown(row: Row) -> str:
    digits = 2 if row["median_s"] < 1e-6 else 1 if row["median_s"] < 100e-6 else 0
    low, median, high = (f"{row[name] * 1e6:,.{digits}f}" for name in ("low_s", "median_s", "high_s"))
    return f"{median} ({low}–{high})"
