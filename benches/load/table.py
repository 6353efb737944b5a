"""Turns rounds into rows, and rows into Markdown, without knowledge of processes."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from generators import Told

Row = dict[str, Any]


def row(name: str, rounds: list[Told]) -> Row:
    """Medians over rounds."""
    return {
        "name": name,
        "rps": median(told.rps for told in rounds),
        "cpu_s": median(told.cpu_s for told in rounds),
        "cpu_us_a_request": median(told.cpu_us_a_request for told in rounds),
        "p50_s": median(told.p50_s for told in rounds if told.p50_s is not None),
        "peak_rss_bytes": max(told.peak_rss_bytes for told in rounds),
        "rounds_rps": [told.rps for told in rounds],
    }


def ratio(rounds: dict[str, list[Told]], first: str, second: str, of: Callable[[Told], float]) -> float:
    """Median over rounds of the first's figure ÷ the second's in the same round."""
    return median(of(one) / of(other) for one, other in zip(rounds[first], rounds[second], strict=True))


def checks(rounds: dict[str, list[Told]], more: dict[str, Any]) -> dict[str, Row]:
    """The figures that have a target."""
    found: dict[str, Row] = {}

    def check(name: str, value: float, to_reach: float, at_most: bool = False) -> None:
        reached = value <= to_reach if at_most else value >= to_reach
        found[name] = {"value": value, "to_reach": to_reach, "reached": reached, "at_most": at_most}

    def rps(told: Told) -> float:
        return told.rps

    def cpu(told: Told) -> float:
        return told.cpu_us_a_request

    for other, to_reach in (("wrk", 1.0), ("oha", 1.15), ("k6", 10.0)):
        if {"mcpace", other} <= rounds.keys():
            check(f"checked requests/s ÷ {other}'s", ratio(rounds, "mcpace", other, rps), to_reach)
    if {"mcpace", "wrk"} <= rounds.keys():
        check("CPU a request ÷ wrk's", ratio(rounds, "mcpace", "wrk", cpu), 1.0, at_most=True)
    if "mcpace-sse" in rounds:
        check("event streams ÷ JSON", ratio(rounds, "mcpace-sse", "mcpace", rps), 0.9)
    if more:
        opened = more["open"]
        check(f"begun ÷ intended at {opened['rate']:,} a second", opened["begun"] / opened["intended"], 1.0)
        waited = (opened["latency_p50_s"] - opened["service_p50_s"]) * 1e6
        check("late at p50 at that rate, µs", waited, 10, at_most=True)
        known = more["known"]["p50_s"]
        off = abs(known["told"] - known["true"]) * 1e6
        check("off a known p50 at that rate, µs", off, 10, at_most=True)
        check("memory of 10,000 users with sessions, MB", more["users_peak_rss_bytes"] / 1e6, 250, at_most=True)
        check("start to first request, s", median(more["first_request_s"]), 0.3, at_most=True)
    return found


def markdown(document: Row) -> str:
    """Two tables, and the circumstances of the measurement."""
    at = document["conditions"]
    lines = [
        f"{at['measured_at']}, {at['cores']} cores ({at['architecture']}): the target has one, the generator another; "
        f"{at['connections']} connections, {at['seconds']:g} s in each of {at['rounds']} rounds. Load average "
        f"{at['load_average_before']:.1f} before: where that is not near 0, the machine had other work, too. Only "
        "ratios within this run mean anything.",
        "",
        "| generator | requests/s | CPU µs a request | p50 µs | peak RSS MB |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one['name']} | {one['rps']:,.0f} | {one['cpu_us_a_request']:.2f} | {one['p50_s'] * 1e6:.0f} "
        f"| {one['peak_rss_bytes'] / 1e6:.0f} |"
        for one in document["rows"]
    ]
    lines += ["", "| check | value | to reach |  |", "| --- | ---: | ---: | --- |"]
    for name, one in document["checks"].items():
        sign = "≤" if one["at_most"] else "≥"
        verdict = "reached" if one["reached"] else "**missed**"
        lines.append(f"| {name} | {_shown(one)} | {sign} {one['to_reach']:g} | {verdict} |")
    if known := document["more"].get("known"):
        p50, way_us = known["p50_s"], (known["p50_s"]["told"] - known["p50_s"]["handed_over"]) * 1e6
        lines += [
            "",
            f"The known p50 is {p50['true'] * 1e6:,.0f} µs, the engine told {p50['told'] * 1e6:,.0f}. From before the "
            f"target's write, with the kernel's delivery in it, it was off by {way_us:.1f} µs.",
        ]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return "\n".join([*lines, "", f"Versions: {versions}.", ""])


def _shown(check: Row) -> str:
    """A figure with enough digits to show on which side of the target it is."""
    value, to_reach = check["value"], check["to_reach"]
    for digits in range(3, 9):
        text = f"{value:.{digits}g}"
        if float(text) != to_reach or value == to_reach:
            break
    return text
