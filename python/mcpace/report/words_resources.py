"""Words for processor time, memory, and the start of processes."""

from __future__ import annotations

from mcpace.report.quantities import clean, duration
from mcpace.report.run import Finding
from mcpace.report.words_reading import Context, Words, time


def _slow_start(finding: Finding) -> str:
    longest = time(finding.context, "longest_ns") or finding.cost_s
    program = clean(finding.context.get("program") or "The server's process", 60)
    typical = time(finding.context, "typical_answer_ns")
    against = f", against {duration(typical)} for its later answers" if typical else ""
    runner = " It is a package runner, which may fetch packages first." if finding.context.get("package_runner") else ""
    return f"{program} took {duration(longest)} until its first answer{against}.{runner}"


def _slow_start_advice(context: Context) -> str:
    if context.get("package_runner"):
        return "Install the server beforehand and start it directly, and keep its process for more than one session."
    return "Import less at the server's start, and keep its process for more than one session."


WORDS: dict[str, Words] = {
    "slow-start": Words(
        "The server's process is slow to start",
        "the server's process is slow to start",
        _slow_start,
        _slow_start_advice,
    ),
}
