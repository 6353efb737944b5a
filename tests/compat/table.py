"""The table that `make compat` prints."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compare import Documented, Spot
from measuring import ADOPTED, CRASHED, DIFFERENT, REFUSED, SAME, SWAPPED, TOLD

COLUMNS = (SAME, TOLD, DIFFERENT, REFUSED, CRASHED)


def summary(report: dict[str, Any]) -> str:
    """A Markdown table: a row for each corpus and way."""
    lines = [
        "| release | way | objects | same | documented | different | refused | crashed | same or documented |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for told in report.values():
        for way in (SWAPPED, ADOPTED):
            counts = Counter(one["ways"][way]["verdict"] for one in told["objects"] if way in one["ways"])
            total = sum(counts.values())
            if total:
                cells = [str(counts[column]) for column in COLUMNS]
                share = f"{100 * (counts[SAME] + counts[TOLD]) / total:.1f} %"
                lines.append(f"| {told['release']} | {way} | {total} | {' | '.join(cells)} | {share} |")
    return "\n".join(lines)


def judged_again(report: dict[str, Any], known: list[Documented]) -> dict[str, Any]:
    """Reads a saved report with the current list of documented differences."""
    for line, told in report.items():
        for one in told["objects"]:
            for way, outcome in one["ways"].items():
                for spot in outcome["spots"]:
                    found = Spot(spot["step"], spot["path"], spot["original"], spot["other"])
                    names = (
                        entry.name for entry in known if entry.covers(way, line, one["object"], spot["run"], found)
                    )
                    spot["documented"] = next(names, "")
                if outcome["verdict"] in (TOLD, DIFFERENT):
                    outcome["verdict"] = TOLD if all(spot["documented"] for spot in outcome["spots"]) else DIFFERENT
    return report


def stale(report: dict[str, Any], known: list[Documented]) -> list[str]:
    """Entries of the list that occurred with no object of a line."""
    seen = {
        (name, spot["documented"])
        for name, told in report.items()
        for one in told["objects"]
        for way in one["ways"].values()
        for spot in way["spots"]
    }
    return [
        f"{one.name} ({line})"
        for one in known
        for line in sorted(one.lines)
        if line in report and not one.optional and (line, one.name) not in seen
    ]
