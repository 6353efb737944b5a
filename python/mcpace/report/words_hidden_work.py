"""Words for work that is done twice or that nobody asked for."""

from __future__ import annotations

from mcpace.report.quantities import clean, count, duration, listed
from mcpace.report.run import Finding
from mcpace.report.words_reading import Context, Words, between, calls, number


def _duplicate_request(finding: Finding) -> str:
    context = finding.context
    sentence = f"{calls(finding)} sent twice with the same JSON-RPC id"
    if number(context, "after_reply_end") != 0:
        drained = between(finding, "first-result", "first-reply-end") or finding.cost_s
        sentence += (
            f"; the client read the first reply's stream to its end ({duration(drained)}) before it took the second"
        )
    if number(context, "executions") == 0:
        methods = context.get("methods")
        known = [clean(method, 40) for method in methods[:4]] if isinstance(methods, list) and methods else ["it"]
        return f"{sentence}. The server answered {listed(known)} twice."
    return f"{sentence}. The tool ran twice."


def _duplicate_request_advice(_: Context) -> str:
    return (
        "Use a release of the client SDK that sends each request once (python: 1.14.0 or newer, see python-sdk #1274); "
        "until then, tools with side effects act twice a call."
    )


def _hidden_listing(finding: Finding) -> str:
    return (
        f"{calls(finding, 'held up')} by a tools/list that the client sent between the result and the return: "
        f"{duration(finding.cost_s)} for a listing that nobody asked for."
    )


def _hidden_listing_advice(_: Context) -> str:
    return (
        "List the tools once before the first call, so that the client already has their output schemas, "
        "and keep the session for the calls after it."
    )


def _session_per_call(finding: Finding) -> str:
    sessions = number(finding.context, "sessions")
    calls = number(finding.context, "tool_calls")
    seen = "A new session was begun for each call"
    if sessions and calls:
        seen = f"{count(sessions, 'session')} for {count(calls, 'tool call')}"
    processes = number(finding.context, "processes")
    spawned = f" and {count(processes, 'server process', 'server processes')} started" if processes else ""
    return f"{seen}{spawned}: initialize ran again each time, {duration(finding.cost_s)} a call."


def _session_per_call_advice(_: Context) -> str:
    return "Begin the session once and make all calls in it."


def _discovery_repeated(finding: Finding) -> str:
    repeats = number(finding.context, "repeats")
    often = f" {count(repeats, 'time')}" if repeats else ""
    return (
        f"The OAuth metadata under /.well-known was fetched{often} again although nothing had changed: "
        f"{duration(finding.cost_s)} a call."
    )


def _discovery_repeated_advice(_: Context) -> str:
    return "Keep the OAuth provider, with its metadata and tokens, over connects instead of making a new one for each."


WORDS: dict[str, Words] = {
    "duplicate-request": Words(
        "Every request is sent twice",
        "every request is sent twice",
        _duplicate_request,
        _duplicate_request_advice,
    ),
    "hidden-listing": Words(
        "A tool listing hides in the call",
        "the client lists the tools again inside the call",
        _hidden_listing,
        _hidden_listing_advice,
    ),
    "session-per-call": Words(
        "A new session for each call",
        "each call opens a session of its own",
        _session_per_call,
        _session_per_call_advice,
    ),
    "discovery-repeated": Words(
        "OAuth metadata is fetched again and again",
        "the OAuth metadata is fetched again for each connect",
        _discovery_repeated,
        _discovery_repeated_advice,
    ),
}
