"""Words for calls that hold up others."""

from __future__ import annotations

from mcpace.report.model.run import Finding
from mcpace.report.words.context import Context, Words, number, time
from mcpace.report.words.quantities import count, duration


def _held(finding: Finding, one: str = "request", many: str | None = None, unknown: str = "") -> str:
    """``3 requests``, or ``unknown`` (``Requests`` at a sentence's beginning) where the run doesn't say how many."""
    held = number(finding.context, "held")
    return count(held, one, many) if held else unknown or (many or f"{one}s").capitalize()


def _longest(finding: Finding) -> str:
    longest = time(finding.context, "longest_ns")
    return f", for {duration(longest)} at the longest" if longest else ""


def _blocked_event_loop(finding: Finding) -> str:
    without = number(finding.context, "without_tool")
    light = f" ({without:.0f} of them called no tool)" if without else ""
    across = " Other sessions waited too." if finding.context.get("across_sessions") is True else ""
    seen = f"{_held(finding)}{light} got no answer until a tool that was running had ended"
    return f"{seen}{_longest(finding)}.{across}"


def _serial_session(finding: Finding) -> str:
    return (
        f"{_held(finding)} had to wait until the one before in the same session was answered{_longest(finding)}, "
        "while the server went on with others."
    )


def _completion_waves(finding: Finding) -> str:
    size = number(finding.context, "at_a_time")
    waves = f"waves of {size:.0f}" if size else "waves"
    waves = "turns, one after another" if size == 1 else waves
    waited = f"{_held(finding, 'call', unknown='calls')} had to wait{_longest(finding)}"
    return f"Equal calls that were at the server together ended in {waves}: {waited}."


def _completion_waves_advice(context: Context) -> str:
    size = number(context, "at_a_time")
    cap = f"the cap of {size:.0f}" if size else "the cap"
    return f"Raise {cap} on the server's workers or threads, or let its tools wait without holding one."


def _thread_pool_saturation(finding: Finding) -> str:
    size = number(finding.context, "at_a_time")
    pool = f"{count(size, 'request')} at a time" if size else "a fixed number of requests at a time"
    held = _held(finding, unknown="others")
    return f"The server worked on {pool}; {held} that it had accepted had to wait{_longest(finding)}."


def _head_of_line(finding: Finding) -> str:
    if finding.context.get("released_with") == "full-buffer":
        return (
            f"{_held(finding, 'reply', 'replies')} came late, in bursts the size of a buffer"
            f"{_longest(finding)}: the server's stdout is written only when its buffer is full."
        )
    return (
        f"{_held(finding, 'reply', 'replies')} came only together with a slower one that was asked "
        f"before{_longest(finding)}, though the same call takes less by itself."
    )


def _head_of_line_advice(context: Context) -> str:
    if context.get("released_with") == "full-buffer":
        return "Have the server flush its stdout after each line (python: -u, or print with flush=True)."
    return "Have the server write each reply when it is ready, not in the order of the requests."


WORDS: dict[str, Words] = {
    "blocked-event-loop": Words(
        "Nothing else is answered while a tool runs",
        "the server answers nothing else while a tool runs",
        _blocked_event_loop,
        "Let tools that compute or wait in a blocking way run in a thread, or write them to wait without blocking.",
    ),
    "serial-session": Words(
        "A session's requests run one after another",
        "the server runs a session's requests one after another",
        _serial_session,
        (
            "Use a release of the server's SDK that handles a session's requests side by side (python: newer than "
            "1.2.0, see python-sdk #188), or spread the calls over several sessions."
        ),
    ),
    "completion-waves": Words(
        "Calls end in waves",
        "a cap on the server's workers makes calls end in waves",
        _completion_waves,
        _completion_waves_advice,
    ),
    "thread-pool-saturation": Words(
        "Requests wait for the server's pool",
        "requests wait until the server's pool has room",
        _thread_pool_saturation,
        "Raise the size of the pool that serves requests, or serve them without a thread each.",
    ),
    "head-of-line": Words(
        "Ready replies wait behind a slower one",
        "replies that are ready wait for a slower one",
        _head_of_line,
        _head_of_line_advice,
    ),
}
