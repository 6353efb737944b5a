"""How the spans of a file were joined to calls, and what is wrong with them."""

from __future__ import annotations

from mcpace.report.model.recording import RecordingFacts, SpanClock, SpanFacts
from mcpace.report.words.quantities import clean, count, duration

LONGEST_NAME = 60
MOST_CLOCKS = 4


def join_sentences(recording: RecordingFacts) -> list[str]:
    """Sentences on the spans of a file; empty where none was read."""
    facts = recording.spans
    if facts is None:
        return []
    return [_joined(facts), *_clocks(facts, recording.traces_only), *_defects(facts)]


def _joined(facts: SpanFacts) -> str:
    told = f"{count(facts.spans, 'span')}, {facts.requests:,} of them requests that programs made"
    if not facts.requests:
        return f"{count(facts.spans, 'span')}, none of them a request that a program made."
    elsewhere = facts.requests - facts.traced - facts.timed - facts.remote
    parts = [
        (facts.traced, "belong to a call by their trace"),
        (facts.timed, "by their time"),
        (facts.remote, "are those of other programs, which the calls waited for"),
        (max(elsewhere, 0), "belong to no call"),
    ]
    return f"{told}: {', '.join(f'{number:,} {words}' for number, words in parts if number)}."


def _clocks(facts: SpanFacts, traces_only: bool) -> list[str]:
    if traces_only:
        return []
    if not facts.clocks:
        return [
            "No trace leads to a recorded call, so the spans are placed by the wall clock, which was read as the "
            "recording started. Their times are wrong by as much as the clocks of both machines differ."
        ]
    told = [_clock(clock) for clock in facts.clocks[:MOST_CLOCKS]]
    more = len(facts.clocks) - MOST_CLOCKS
    return [*told, f"{count(more, 'program')} more have clocks of their own."] if more > 0 else told


def _clock(clock: SpanClock) -> str:
    name = f"of {clean(clock.service, LONGEST_NAME)}" if clock.service else "of the spans"
    if clock.is_contradictory:
        return (
            f"The times {name} fit no recorded call with one shift: the clock drifts or was set. They were shifted by "
            f"{_signed(clock.shift_s)} and can be wrong by {duration(clock.error_s or 0.0)}."
        )
    error = "by an unknown time" if clock.error_s is None else f"by at most {duration(clock.error_s)}"
    if clock.shift_s == 0:
        return f"The times {name} fit the recorded calls and can be wrong {error}."
    return (
        f"The clock {name} differs from that of the recording: its times were shifted by {_signed(clock.shift_s)} to "
        f"fit the recorded calls, and can still be wrong {error}."
    )


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def _defects(facts: SpanFacts) -> list[str]:
    defects = [
        (facts.unended, "has no end and is left out", "have no end and are left out"),
        (facts.impossible, "ends before it begins and is left out", "end before they begin and are left out"),
        (facts.duplicates, "is in the file twice and counts once", "are in the file already and count once"),
        (
            facts.misplaced,
            "begins outside the span that began it; its own times count",
            "begin outside the spans that began them; their own times count",
        ),
        (facts.left_out, "is left out, for want of room", "are left out, for want of room"),
    ]
    told = [f"{count(number, 'span')} {one if number == 1 else many}." for number, one, many in defects if number]
    return [*told, "The file ends within a span."] if facts.cut_off else told
