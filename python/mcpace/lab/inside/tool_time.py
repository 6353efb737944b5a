"""The time inside a tool, from an explained recording."""

from __future__ import annotations

from typing import Any

from mcpace import _core
from mcpace.lab.inside.source_paths import source_path
from mcpace.report.model.inside import FlameGraph, ToolTime

NANOS = 1_000_000_000
COUNTS = ("calls", "first_calls", "traced", "overlapping", "samples", "spans", "traced_spans")


def tool_time(explained: _core.Explained, tool: str | None) -> ToolTime | None:
    """Means over the calls of ``tool``; ``None`` where its inside is unknown and no source says why."""
    missing = [reason for _, reason in explained.missing_sources]
    sums = next((sums for sums in explained.tool_times if sums["tool"] == tool), None)
    if sums is None or not sums["calls"]:
        overlapping = sums["overlapping"] if sums else 0
        return ToolTime(calls=0, overlapping=overlapping, server_s=0.0, missing=missing) if missing else None
    calls = sums["calls"]
    return ToolTime.model_validate(
        {
            **mean_row({name: sums[name] for name in ("server_ns", "waiting_ns", "rest_ns")}, calls),
            **{name: sums[name] for name in COUNTS},
            **mean_tables(sums, calls),
            "flame": _flame_graph(sums["flame"], calls),
            "missing": missing,
        }
    )


def mean_tables(sums: dict[str, Any], calls: int) -> dict[str, Any]:
    """The tables of the dependencies, packages and lines, as means over the calls."""
    return {
        "dependencies": [{**mean_row(one, calls), "requests": one["requests"] / calls} for one in sums["dependencies"]],
        "packages": [mean_row(one, calls) for one in sums["packages"]],
        "lines": [{**mean_row(one, calls), "file": source_path(one["file"])} for one in sums["lines"]],
    }


def mean_row(row: dict[str, Any], calls: int) -> dict[str, Any]:
    """The members of a row, with means in seconds in place of sums in nanoseconds."""
    means = {f"{name[:-3]}_s": value / NANOS / calls for name, value in row.items() if name.endswith("_ns")}
    return {name: value for name, value in row.items() if not name.endswith("_ns")} | means


def _flame_graph(flame: dict[str, Any], calls: int) -> FlameGraph | None:
    if not flame["nodes"]:
        return None
    frames, nodes = flame["frames"], flame["nodes"]
    files = list(dict.fromkeys((frame["file"], frame["origin"]) for frame in frames))
    numbers = {file: number for number, file in enumerate(files)}
    return FlameGraph(
        paths=[source_path(path) if origin == "own" else path for path, origin in files],
        origins=[origin for _, origin in files],
        functions=[frame["function"] for frame in frames],
        files=[numbers[frame["file"], frame["origin"]] for frame in frames],
        lines=[frame["line"] or 0 for frame in frames],
        parents=[node["parent"] for node in nodes],
        frames=[0 if node["frame"] is None else node["frame"] + 1 for node in nodes],
        running_s=[_round_time(node["running_ns"] / calls) for node in nodes],
        waiting_s=[_round_time(node["waiting_ns"] / calls) for node in nodes],
    )


def _round_time(nanos: float) -> float:
    """Seconds to a tenth of a microsecond, which is finer than samples are, and shorter to write."""
    return round(nanos / NANOS, 7)
