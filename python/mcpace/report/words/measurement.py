"""Words for runs whose figures are those of the instrument, not of the target."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import GeneratorLimited, NoisyRun, RecorderLimited
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words
from mcpace.report.words.quantities import count, duration, share


def _lateness(context: RecorderLimited | NoisyRun) -> str:
    times, late, whole = context.times, context.late_ns, context.of_ns
    often = f" {count(times, 'time')}" if times else ""
    part = f", {share(late, whole)} of what was measured" if late and whole else ""
    in_all = f", for {duration(late / 1e9)} in all" if late else ""
    return f"ran late{often}{in_all}{part}"


def _recorder_limited(finding: Finding, context: RecorderLimited) -> str:
    return (
        f"The recorder's threads were busy and {_lateness(context)}: times in this recording may be the recorder's own."
    )


def _noisy_run(finding: Finding, context: NoisyRun) -> str:
    return (
        f"The recorder's threads were kept from running and {_lateness(context)}: the machine had other things to do, "
        "and client and server probably waited likewise."
    )


def _generator_limited(finding: Finding, context: GeneratorLimited) -> str:
    if context.reason == "late-starts":
        late = context.late_p99_s
        by = f": one in a hundred by more than {duration(late)}" if late else ""
        return f"Calls that were due left late for reasons of the generator's own{by}."
    busy = context.busy
    part = f"busy for {share(busy, 1)} of the time" if busy else "busy all the time"
    return f"The generator's threads were {part}, and replies waited unread: the figures are its own, not the target's."


WORDS: tuple[Words[Any], ...] = (
    Words(
        RecorderLimited,
        "The recorder was the limit",
        "the recorder itself was too busy to measure",
        _recorder_limited,
        "Record less at a time (fewer connections, --body-limit 0), or give the recorder processors of its own.",
    ),
    Words(
        NoisyRun,
        "The machine was busy with other work",
        "the machine was too busy with other work to measure on",
        _noisy_run,
        "Measure again on a machine without other work. No time of this run is reliable.",
    ),
    Words(
        GeneratorLimited,
        "The load generator was the limit",
        "the load generator, not the target, was the limit",
        _generator_limited,
        "Give the generator more threads or another machine, or ask for less load.",
    ),
)
