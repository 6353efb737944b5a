"""Words for calls that delay other calls."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    BlockedEventLoop,
    CompletionWaves,
    HeadOfLine,
    SerialSession,
    ThreadPoolSaturation,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, seconds
from mcpace.report.words.quantities import count, duration

AnyContext = BlockedEventLoop | CompletionWaves | HeadOfLine | SerialSession | ThreadPoolSaturation


def _held_requests(context: AnyContext, one: str = "request", many: str | None = None, unknown: str = "") -> str:
    """``3 requests``; where the run lacks the number, ``unknown``, or ``Requests`` by default."""
    return count(context.held, one, many) if context.held else unknown or (many or f"{one}s").capitalize()


def _longest_wait(context: AnyContext) -> str:
    longest = seconds(context.longest_ns)
    return f", for {duration(longest)} at the longest" if longest else ""


def _blocked_event_loop(finding: Finding, context: BlockedEventLoop) -> str:
    without = context.without_tool
    light = f" ({without:.0f} of them called no tool)" if without else ""
    across = " Other sessions waited too." if context.across_sessions is True else ""
    seen = f"{_held_requests(context)}{light} got no answer until a tool that was running had ended"
    return f"{seen}{_longest_wait(context)}.{across}"


def _serial_session(finding: Finding, context: SerialSession) -> str:
    return (
        f"{_held_requests(context)} had to wait until the one before in the same session was answered"
        f"{_longest_wait(context)}, while the server went on with others."
    )


def _completion_waves(finding: Finding, context: CompletionWaves) -> str:
    size = context.at_a_time
    waves = f"waves of {size:.0f}" if size else "waves"
    waves = "turns, one after another" if size == 1 else waves
    waited = f"{_held_requests(context, 'call', unknown='calls')} had to wait{_longest_wait(context)}"
    return f"Equal calls that were at the server together ended in {waves}: {waited}."


def _completion_waves_advice(context: CompletionWaves) -> str:
    size = context.at_a_time
    cap = f"the cap of {size:.0f}" if size else "the cap"
    return f"Raise {cap} on the server's workers or threads, or let its tools wait without holding one."


def _thread_pool_saturation(finding: Finding, context: ThreadPoolSaturation) -> str:
    size = context.at_a_time
    pool = f"{count(size, 'request')} at a time" if size else "a fixed number of requests at a time"
    held = _held_requests(context, unknown="others")
    return f"The server worked on {pool}; {held} that it had accepted had to wait{_longest_wait(context)}."


def _head_of_line(finding: Finding, context: HeadOfLine) -> str:
    if context.released_with == "full-buffer":
        return (
            f"{_held_requests(context, 'reply', 'replies')} came late, in bursts the size of a buffer"
            f"{_longest_wait(context)}: the server's stdout is written only when its buffer is full."
        )
    return (
        f"{_held_requests(context, 'reply', 'replies')} came only together with a slower one that was asked "
        f"before{_longest_wait(context)}, though the same call takes less by itself."
    )


def _head_of_line_advice(context: HeadOfLine) -> str:
    if context.released_with == "full-buffer":
        return "Have the server flush its stdout after each line (python: -u, or print with flush=True)."
    return "Have the server write each reply when it is ready, not in the order of the requests."


WORDS: tuple[Words[Any], ...] = (
    Words(
        BlockedEventLoop,
        "Nothing else is answered while a tool runs",
        "the server answers nothing else while a tool runs",
        _blocked_event_loop,
        "Let tools that compute or wait in a blocking way run in a thread, or write them to wait without blocking.",
    ),
    Words(
        SerialSession,
        "A session's requests run one after another",
        "the server runs a session's requests one after another",
        _serial_session,
        (
            "Use a release of the server's SDK that handles a session's requests side by side (python: newer than "
            "1.2.0, see python-sdk #188), or spread the calls over several sessions."
        ),
    ),
    Words(
        CompletionWaves,
        "Calls end in waves",
        "a cap on the server's workers makes calls end in waves",
        _completion_waves,
        _completion_waves_advice,
    ),
    Words(
        ThreadPoolSaturation,
        "Requests wait for the server's pool",
        "requests wait until the server's pool has room",
        _thread_pool_saturation,
        "Raise the size of the pool that serves requests, or serve them without a thread each.",
    ),
    Words(
        HeadOfLine,
        "Ready replies wait behind a slower one",
        "replies that are ready wait for a slower one",
        _head_of_line,
        _head_of_line_advice,
    ),
)
