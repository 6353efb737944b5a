"""Summary of one recording, and the program that makes summaries in a process of its own.

The program reads one path a line, as JSON, and answers each with one line of JSON: a summary, or ``error``. It ends
with its input, so it does not outlive the process that started it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mcpace import _core

LONGEST_NAME = 1_024
LONGEST_REASON = 300
NANOS = 1e9


def summarize_recording(path: str) -> dict[str, Any]:
    """Calls, the tool that is called most with its median, and the costs of all findings.

    Raises :class:`mcpace._core.Problem` where the file is no recording.
    """
    explained = _core.explained([path])
    requests = [one for one in explained.methods if one["method"] == "tools/call"]
    if requests:
        calls = sum(one["requests"] for one in requests)
        most = max(requests, key=lambda one: one["requests"])
        tool, median_ns = most["name"], most["median_ns"]
    else:
        calls, tool, median_ns = _operations(explained)
    findings = []
    for finding in explained.findings:
        total = finding["total"]
        costs = (finding["calls"], total["time_ns"], total["requests"], total["bytes"])
        findings.append([finding["code"], *costs])
    return {
        "calls": calls,
        "tool": None if tool is None else tool[:LONGEST_NAME],
        "p50_ns": median_ns,
        "is_cut_off": explained.partial,
        "findings": findings,
    }


def _operations(explained: _core.Explained) -> tuple[int, str | None, int | None]:
    """The calls of a client that mcpace ran, where none of their requests was recorded."""
    by_tool: dict[str | None, list[float]] = {}
    calls = 0
    for call, seconds, ended, _ in explained.trials("call"):
        calls += 1
        if ended == "ok":
            by_tool.setdefault(explained.tool(call), []).append(seconds)
    if not by_tool:
        return calls, None, None
    tool, durations = max(by_tool.items(), key=lambda one: len(one[1]))
    return calls, tool, int(NANOS * sorted(durations)[(len(durations) - 1) // 2])


def main() -> None:
    """Answers each line of stdin."""
    for line in sys.stdin.buffer:
        path = json.loads(line)
        try:
            answer = summarize_recording(path)
        except (_core.Problem, OSError, UnicodeError) as problem:
            reason = str(problem).replace(path, "").removeprefix("cannot read : ").strip(": ")
            answer = {"error": reason[:LONGEST_REASON]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
