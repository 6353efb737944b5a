"""Turns rounds into rows, and rows into Markdown, without knowledge of processes."""

from __future__ import annotations

from statistics import median
from typing import Any

from load import Figures

Row = dict[str, Any]

HEAD = (
    "server", "mode", "revision", "requests/s", "÷ floor", "p50 ms", "p99 ms", "CPU µs a request", "÷ floor's",
    "RSS MB", "p50 ms, 1 connection", "40 ms share",
)  # fmt: skip


def row(name: str, mode: str, revision: str, tools: int, rounds: list[tuple[Figures, float, int]], one: Figures) -> Row:
    """Medians over rounds of (figures, CPU seconds, RSS); `one` is the run over a single connection."""
    figures = [figures for figures, _, _ in rounds]
    return {
        "name": name,
        "mode": mode,
        "revision": revision,
        "tools": tools,
        "rps": median(f.rps for f in figures),
        "p50_s": median(f.p50_s for f in figures),
        "p99_s": median(f.p99_s for f in figures),
        "cpu_s_per_request": median(cpu / f.requests for f, cpu, _ in rounds),
        "rss_bytes": max(rss for _, _, rss in rounds),
        "rounds_rps": [f.rps for f in figures],
        "one_connection": {"p50_s": one.p50_s, "p99_s": one.p99_s, "stalled_share": one.stalled_share},
    }


def add_ratios(rows: list[Row]) -> None:
    """Adds to each row its share of the floor's throughput, and the ratio of its CPU time to the floor's."""
    floor = next((row for row in rows if row["name"] == "floor"), None)
    for row in rows:
        row["ratio_to_floor"] = ratio(row, floor) if floor else None
        row["cpu_ratio_to_floor"] = row["cpu_s_per_request"] / floor["cpu_s_per_request"] if floor else None


def ratio(row: Row, base: Row) -> float:
    """Median over rounds of one row's throughput ÷ another's in the same round, because only those are comparable."""
    return float(median(a / b for a, b in zip(row["rounds_rps"], base["rounds_rps"], strict=True)))


def checks(rows: list[Row]) -> dict[str, Any]:
    """The figures with targets; absent where their rows were not measured."""
    of = {(row["name"], row["mode"], row["revision"], row["tools"]): row for row in rows}
    own = {key[1:]: row for key, row in of.items() if key[0] == "mcpace-rust"}
    legacy, modern = "2025-06-18", "2026-07-28"
    json = own.get(("json", legacy, 1))
    found: dict[str, Any] = {}

    def compare(name: str, row: Row | None, base: Row | None, to_reach: float) -> None:
        if row and base:
            value = ratio(row, base)
            found[name] = {"value": value, "to_reach": to_reach, "reached": value >= to_reach}

    compare("json ÷ floor", json, of.get(("floor", "json", legacy, 1)), 0.90)
    compare("json ÷ floor, 2026-07-28", own.get(("json", modern, 1)), of.get(("floor", "json", legacy, 1)), 0.90)
    compare("json ÷ rmcp json", json, of.get(("rmcp", "json", legacy, 1)), 3)
    for revision in (legacy, modern):
        for mode in ("sse", "auto"):
            base = own.get(("json", revision, 1))
            compare(f"{mode} ÷ json, {revision}", own.get((mode, revision, 1)), base, 0.80)
    compare("100 tools ÷ one", own.get(("json", legacy, 100)), json, 0.95)
    python = of.get(("python-mcp", "json", legacy, 1))
    floor = of.get(("floor", "json", legacy, 1))
    sync = of.get(("mcpace-python-sync", "json", legacy, 1))
    compare("Python sync tool ÷ python-mcp, json", sync, python, 100)
    compare("Python sync tool ÷ floor, json", sync, floor, 0.6)
    compare("Python async tool ÷ python-mcp, json", of.get(("mcpace-python-async", "json", legacy, 1)), python, 30)
    compare(
        "official SDK's server, adopted ÷ on uvicorn, json", of.get(("mcpace-adopted", "json", legacy, 1)), python, 60
    )
    if own:
        worst = max(row["one_connection"]["stalled_share"] for row in own.values())
        found["calls of 35–60 ms at one connection, worst mode"] = {
            "value": worst,
            "to_reach": 0.001,
            "reached": worst <= 0.001,
            "at_most": True,
        }
    return found


def markdown(rows: list[Row]) -> str:
    """The table."""
    lines = [line(HEAD), line(["---"] * 3 + ["---:"] * (len(HEAD) - 3)), *(line(cells(row)) for row in rows)]
    return "\n".join(lines) + "\n"


def markdown_checks(found: dict[str, Any]) -> str:
    """The figures with targets."""
    lines = [line(["check", "value", "to reach", ""]), line(["---", "---:", "---:", "---"])]
    for name, check in found.items():
        at_most = "≤" if check.get("at_most") else "≥"
        verdict = "reached" if check["reached"] else "**missed**"
        lines.append(line([name, f"{check['value']:.3g}", f"{at_most} {check['to_reach']:.3g}", verdict]))
    return "\n".join(lines) + "\n"


def cells(row: Row) -> list[str]:
    """One row as text."""
    name = row["name"] if row["tools"] == 1 else f"{row['name']}, {row['tools']} tools"
    floor = row["ratio_to_floor"]
    return [
        name,
        row["mode"],
        row["revision"],
        f"{row['rps']:,.0f}",
        "–" if floor is None else f"{floor:.2f}" if floor >= 0.1 else f"{floor:.4f}",
        f"{row['p50_s'] * 1e3:.2f}",
        f"{row['p99_s'] * 1e3:.2f}",
        f"{row['cpu_s_per_request'] * 1e6:,.1f}",
        "–" if floor is None else f"{row['cpu_ratio_to_floor']:,.2f}",
        f"{row['rss_bytes'] / 1e6:.1f}",
        f"{row['one_connection']['p50_s'] * 1e3:.2f}",
        f"{row['one_connection']['stalled_share']:.1%}",
    ]


def line(cells: list[str] | tuple[str, ...]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
