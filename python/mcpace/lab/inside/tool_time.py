"""The time inside a tool, from an explained recording."""

from __future__ import annotations

from typing import Any

from mcpace import _core
from mcpace.report.model.inside import ToolTime


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
            "lines": [row(one) for one in sums["lines"]],
            "missing": missing,
        }
    )
