"""The time inside a tool, from an explained recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpace import _core
from mcpace.lab.inside.source_paths import source_path
from mcpace.report.model.inside import FlameGraph, ToolTime


def tool_time(explained: _core.Explained, tool: str | None) -> ToolTime | None:
    """Means over the calls of ``tool``; ``None`` where its inside is unknown and no source says why."""
    missing = [reason for _, reason in explained.missing_sources]
    sums = next((sums for sums in explained.tool_times if sums["tool"] == tool), None)
    if sums is None or not sums["calls"]:
        overlapping = sums["overlapping"] if sums else 0
        return ToolTime(calls=0, overlapping=overlapping, server_s=0.0, missing=missing) if missing else None
    calls = sums["calls"]

    def mean_s(nanos: int) -> float:
        return nanos / 1e9 / float(calls)

    def row(of: dict[str, Any]) -> dict[str, Any]:
        """The members of a row, with means in seconds in place of sums in nanoseconds."""
        return {
            (name[:-3] + "_s" if name.endswith("_ns") else name): mean_s(value) if name.endswith("_ns") else value
            for name, value in of.items()
        }

    dependencies = [{**row(one), "requests": one["requests"] / calls} for one in sums["dependencies"]]
    return ToolTime.model_validate(
        {
            **row({name: sums[name] for name in ("server_ns", "waiting_ns", "rest_ns")}),
            **{name: sums[name] for name in ("calls", "traced", "overlapping", "samples", "spans", "traced_spans")},
            "dependencies": dependencies,
            "packages": [row(one) for one in sums["packages"]],
            "lines": [{**row(one), "file": source_path(one["file"])} for one in sums["lines"]],
            "flame": _flame_graph(sums["flame"], mean_s),
            "missing": missing,
        }
    )


def _flame_graph(flame: dict[str, Any], mean_s: Callable[[int], float]) -> FlameGraph | None:
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
        running_s=[_round_time(mean_s(node["running_ns"])) for node in nodes],
        waiting_s=[_round_time(mean_s(node["waiting_ns"])) for node in nodes],
    )


def _round_time(seconds: float) -> float:
    """Seconds to a tenth of a microsecond, which is finer than samples are, and shorter to write."""
    return round(seconds, 7)
