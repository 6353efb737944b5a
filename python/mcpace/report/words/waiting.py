"""Words for calls that wait unnecessarily."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import AuthDeadlock, LateDelivery, StreamNotDrained, WaitsForGet
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, cost_words, seconds, seconds_between
from mcpace.report.words.quantities import count, duration


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
)
