"""Words for calls that wait unnecessarily."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    AuthDeadlock,
    ClientTimeOut,
    LateDelivery,
    ProgressIgnored,
    StreamNotDrained,
    WaitsForGet,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, cost_words, seconds, seconds_between
from mcpace.report.words.quantities import NO_BREAK, clean, count, duration


def _late_delivery(finding: Finding, context: LateDelivery) -> str:
    late = seconds_between(finding, "result", "call-returned") or seconds(context.longest_ns) or finding.cost_s
    waited = {
        "reply-end": "it waited for the end of the reply's stream.",
        "connection-close": "it waited for the connection to close.",
        "nothing-seen": "nothing on the wire says what it waited for.",
    }.get(context.released_by or "", "the client had it and waited on.")
    return f"The result was complete on the wire {duration(late)} before the client's call returned: {waited}"


def _late_delivery_advice(context: LateDelivery) -> str:
    if context.released_by == "nothing-seen":
        return "Profile the client between the result and the return: it computed, or waited for something of its own."
    return (
        "Have the client return as soon as the result's event is complete; where you own the server, "
        "end the reply right after the result."
    )


def _waits_for_get(finding: Finding, context: WaitsForGet) -> str:
    wait = seconds_between(finding, "stream-request", "stream-head") or seconds(context.longest_ns) or finding.cost_s
    why = {
        "authorization-lock": " Authentication was on: a lock in its code is held across the GET.",
        "stream-first": " The client opens that stream before anything else, by design.",
    }.get(context.gate or "", "")
    return (
        f"No request left the client until the head of the standalone GET's reply had arrived, {duration(wait)}: "
        f"it waited for a stream that the call doesn't need.{why}"
    )


def _auth_deadlock(finding: Finding, context: AuthDeadlock) -> str:
    longest = seconds(context.longest_ns) or finding.cost_s
    return (
        f"After its request for a token the client sent nothing any more: {duration(longest)} of silence, no answer "
        "due, until the call failed or the recording ended."
    )


def _stream_not_drained(finding: Finding, context: StreamNotDrained) -> str:
    left, connections, requests = context.left_early, context.connections, context.requests
    broke = count(left, "reply", "replies") if left else "its replies"
    used = f": {count(connections, 'connection')} for {count(requests, 'request')}" if connections and requests else ""
    return (
        f"The client broke off {broke} once it had the result, after which a connection can't be used again{used}, "
        f"{cost_words(finding)} for setting them up."
    )


def _client_time_out(finding: Finding, context: ClientTimeOut) -> str:
    what = f"`{clean(context.tool, 60)}`" if context.tool else "its requests"
    number = (
        f"{context.calls} of {count(context.of_calls, 'request')}" if context.calls and context.of_calls else "some"
    )
    since = {"last-event": " without data"}.get(context.counted_from or "", "")
    how = {
        "cancelled": "it sent `notifications/cancelled`",
        "closed": {
            "head": "it closed the connection before the head of the reply",
            "body": "it closed the reply after its head, before the answer",
        }.get(context.layer or "", "it closed the connection"),
        "repeated": "it sent the same call again",
        "call-failed": "its call failed, and the connection stayed open",
    }.get(context.sign or "", "")
    later = ""
    if context.answered_later:
        longest = seconds(context.longest_answer_ns)
        after = f", after up to {duration(longest)}" if longest else ""
        later = f" The server answered {context.answered_later} of them later{after}, for nobody."
    age = round_time(seconds(context.time_out_ns) or 0.0)
    return f"The client gave up {number} for {what} after {age}{since}{': ' + how if how else ''}.{later}"


def _client_time_out_advice(context: ClientTimeOut) -> str:
    longest, limit = seconds(context.longest_answer_ns), seconds(context.time_out_ns)
    raised = f" above {duration(longest)}" if longest and limit and longest > limit else ""
    setting = {
        "head": "its time-out for the head of a reply",
        "body": "its time-out for the body of a reply",
    }.get(context.layer or "", "its time-out for requests")
    return (
        f"Raise the client's limit ({setting}){raised}, or have the tool answer sooner: as a task, or in parts. "
        "`mcpace limits` finds the limits of a release of an SDK."
    )


def _progress_ignored(finding: Finding, context: ProgressIgnored) -> str:
    number = count(context.calls, "request") if context.calls else "requests"
    age, silence = seconds(context.time_out_ns), seconds(context.silence_ns)
    heard = f", {duration(silence)} at most after the last progress" if silence else ""
    same = " It gave up requests without progress after the same time." if context.without_progress else ""
    return (
        f"The server sent progress, yet the client gave up {number} after {round_time(age or 0.0)}{heard}: "
        f"its time-out counts from the request.{same}"
    )


def round_time(time_s: float) -> str:
    """A time-out in round figures: a whole number of seconds where the timer was a little late."""
    whole = round(time_s)
    if whole and -0.005 <= time_s - whole <= max(0.1, 0.01 * whole):
        return f"{whole:,}{NO_BREAK}s"
    return duration(time_s)


WORDS: tuple[Words[Any], ...] = (
    Words(
        LateDelivery,
        "The result is there, but the call doesn't return",
        "the client has the result long before its call returns",
        _late_delivery,
        _late_delivery_advice,
    ),
    Words(
        WaitsForGet,
        "Requests wait for the standalone GET",
        "requests wait for the standalone GET's reply",
        _waits_for_get,
        (
            "Have the server answer the standalone GET at once, with its headers or with 405; "
            "a client should not hold its requests for it."
        ),
    ),
    Words(
        AuthDeadlock,
        "The client hangs after it asked for a token",
        "the client hangs after it asked for a token",
        _auth_deadlock,
        (
            "Use a release of the client SDK without the deadlock (FastMCP 2.14 has it, 3.4 has not), or give each new "
            "connection an OAuth provider of its own."
        ),
    ),
    Words(
        StreamNotDrained,
        "Replies are dropped before their end, which costs connections",
        "the client drops replies before their end and loses their connections",
        _stream_not_drained,
        "Read each reply to its end in the client, at least for a moment; have the server end it with the result.",
    ),
    Words(
        ClientTimeOut,
        "The client gives up before the answer comes",
        "the client gives up before the answer comes",
        _client_time_out,
        _client_time_out_advice,
    ),
    Words(
        ProgressIgnored,
        "Progress does not keep the client waiting",
        "the client gives up although the server sends progress",
        _progress_ignored,
        (
            "Have the client reset its time-out on progress (`resetTimeoutOnProgress` in the TypeScript SDK), or raise "
            "the time-out; progress from the server changes nothing otherwise."
        ),
    ),
)
