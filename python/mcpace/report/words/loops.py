"""Words for requests that are repeated in vain."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import GetLoop, ResumeLoop, RetryStorm
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, seconds
from mcpace.report.words.quantities import count, duration


def _period_words(context: GetLoop | ResumeLoop | RetryStorm) -> str:
    period = seconds(context.period_ns)
    return f" every {duration(period)}" if period else ""


def _get_loop(finding: Finding, context: GetLoop) -> str:
    streams = context.streams
    often = f" {count(streams, 'time')}" if streams else " again and again"
    life = seconds(context.life_ns)
    lived = f" after {duration(life)}" if life else " at once"
    what = (
        "the server's replies were no event streams"
        if context.not_a_stream is True
        else f"each stream ended{lived} and had brought nothing"
    )
    return f"The standalone GET was opened{often},{_period_words(context) or ' at a fixed period'}: {what}."


def _get_loop_advice(context: GetLoop) -> str:
    if context.not_a_stream is True:
        return "Have the server answer the standalone GET with 405 where it offers no stream, not with 200 and a text."
    return (
        "Have the server hold the standalone stream open or answer it with 405; a client should wait longer each time."
    )


def _resume_loop(finding: Finding, context: ResumeLoop) -> str:
    attempts = context.attempts
    often = f" {count(attempts, 'time')}" if attempts else " again and again"
    return (
        f"The client asked{often} for a stream to go on after the same event{_period_words(context)}, and the answer "
        "that it waited for never came."
    )


def _retry_storm(finding: Finding, context: RetryStorm) -> str:
    requests, clients, status = context.requests, context.clients, context.status
    refused = f" ({status:.0f})" if status else ""
    every = _period_words(context)
    if context.pattern == "in-step":
        who = count(clients, "client") if clients else "many clients"
        all_ = f", {count(requests, 'request')} in all" if requests else ""
        return f"{_capitalize(who)} tried again at the same moments{every}{all_}, and were refused{refused}."
    asked = count(requests, "request") if requests else "requests"
    return f"{_capitalize(asked)} came{every} though the server refused each of them{refused}: no pause grew."


def _retry_storm_advice(context: RetryStorm) -> str:
    if context.status == 405:
        return (
            "Have the client take 405 for an answer: that server has no such stream, and asking again changes nothing."
        )
    return "Have clients wait longer after each refusal, by a random time of their own, and heed Retry-After."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


WORDS: tuple[Words[Any], ...] = (
    Words(
        GetLoop,
        "The standalone GET is opened again and again",
        "the client opens the standalone stream again and again",
        _get_loop,
        _get_loop_advice,
    ),
    Words(
        ResumeLoop,
        "A stream is resumed in vain, and the call hangs",
        "the client resumes a stream in vain until it gives up",
        _resume_loop,
        (
            "Have the server keep a stream's events until its answer was delivered, and answer 404 or an error where "
            "it no longer can, so that the client stops."
        ),
    ),
    Words(
        RetryStorm,
        "Refused requests come again without a longer pause",
        "refused requests come again at a steady pace",
        _retry_storm,
        _retry_storm_advice,
    ),
)
