"""The sentences for findings: the one place where a code becomes words for people.

Design constraint: a sentence is built from the finding's own figures and context, and a member of the context that is
missing (an older or newer run) only makes the sentence shorter. Nothing here decides whether something is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpace.report.quantities import clean, count, duration, size
from mcpace.report.run import Finding

Context = Mapping[str, Any]


@dataclass(frozen=True)
class Words:
    """What is said about one code."""

    title: str
    """A heading."""
    clause: str
    """The cause as a main clause, for the verdict: ``every request is sent twice``."""
    explain: Callable[[Finding], str]
    """One or two sentences of what was seen, with figures."""
    advise: Callable[[Context], str]
    """One sentence of what to do."""


def title_for(code: str) -> str:
    """Heading of a finding; the code itself where this release has no words for it."""
    return _WORDS[code].title if code in _WORDS else clean(code, 60)


def clause_for(code: str) -> str:
    """The cause as a main clause without capital and full stop."""
    return _WORDS[code].clause if code in _WORDS else f"{clean(code, 60)} was seen"


def explanation_for(finding: Finding) -> str:
    """What was seen and what it costs, in one or two sentences."""
    if finding.code not in _WORDS:
        return "This release of mcpace has no words for this cause; a newer one has."
    return _WORDS[finding.code].explain(finding)


def advice_for(code: str, context: Context) -> str:
    """One sentence of what to do; empty for a code that this release doesn't know."""
    return _WORDS[code].advise(context) if code in _WORDS else ""


def disproof_for(code: str) -> str:
    """The experiment that would disprove a finding; empty for a code that this release doesn't know."""
    return DISPROOFS.get(code, "")


def cost_of(finding: Finding) -> str:
    """``2.0 s, 1 request and 640 B a call``: only what it does cost."""
    costs = [duration(finding.cost_s)] if finding.cost_s > 0 else []
    if finding.cost_requests >= 0.05:
        costs.append(count(finding.cost_requests, "extra request"))
    if finding.cost_bytes >= 1:
        costs.append(size(finding.cost_bytes))
    return " + ".join(costs) + " a call" if costs else "no time of its own"


# --- what each code says ---------------------------------------------------------------------------------------------


def _duplicate_request(finding: Finding) -> str:
    context = finding.context
    waited = _time(context, "drain_ns", "gap_ns", "wait_ns") or finding.cost_s
    sentence = f"{_calls(finding)} sent twice with the same JSON-RPC id"
    if context.get("drained", True):
        sentence += f"; the client read the first reply's stream to its end ({duration(waited)}) before it took the second"
    method = str(context.get("rpc_method") or context.get("method") or "")
    work = "The tool ran twice." if method in ("tools/call", "") else f"The server answered {clean(method, 40)} twice."
    return f"{sentence}. {work}"


def _duplicate_request_advice(_: Context) -> str:
    return (
        "Use a release of the client SDK that sends each request once (python: 1.14.0 or newer, see python-sdk #1274); "
        "until then, tools with side effects act twice a call."
    )


def _late_delivery(finding: Finding) -> str:
    late = _time(finding.context, "late_ns", "wait_ns") or finding.cost_s
    return (
        f"The result was complete on the wire {duration(late)} before the client's call returned: "
        "the client had it and waited on, usually for the reply's stream to end."
    )


def _late_delivery_advice(_: Context) -> str:
    return (
        "Have the client return as soon as the result's event is complete; where you own the server, "
        "end the reply's stream right after the result."
    )


def _hidden_listing(finding: Finding) -> str:
    listings = _number(finding.context, "listings", "requests") or finding.cost_requests or 1
    return (
        f"Between a call's result and its return the client fetched the tool list ({count(listings, 'tools/list request')}, "
        f"{duration(finding.cost_s)}), which nobody asked for."
    )


def _hidden_listing_advice(_: Context) -> str:
    return (
        "List the tools once before the first call, so that the client already has their output schemas, "
        "and keep the session for the calls after it."
    )


def _connection_per_request(finding: Finding) -> str:
    connections = _number(finding.context, "connections")
    requests = _number(finding.context, "requests", "exchanges")
    seen = f"{count(connections, 'connection')} for {count(requests, 'request')}" if connections and requests else "Almost "
    seen = seen if connections and requests else "Almost every request opened a connection of its own"
    return f"{seen}: TCP (and TLS) were set up again each time, {duration(finding.cost_s)} a call."


def _connection_per_request_advice(_: Context) -> str:
    return "Share one HTTP client over the session, read each reply to its end, and leave keep-alive on at the server."


def _session_per_call(finding: Finding) -> str:
    sessions = _number(finding.context, "sessions", "initializes")
    calls = _number(finding.context, "calls")
    seen = f"{count(sessions, 'session was', 'sessions were')} opened for {count(calls, 'call')}" if sessions and calls else ""
    seen = seen or "A new session was opened for each call"
    return f"{seen}: initialize ran again each time, {duration(finding.cost_s)} a call."


def _session_per_call_advice(_: Context) -> str:
    return "Open the session once and make all calls in it."


def _discovery_repeated(finding: Finding) -> str:
    fetched = _number(finding.context, "fetches", "requests", "times") or finding.cost_requests
    often = f" ({count(fetched, 'request')})" if fetched else ""
    return (
        f"The OAuth metadata under /.well-known was fetched again after the first connect{often}, "
        f"{duration(finding.cost_s)} each time, although it had not changed."
    )


def _discovery_repeated_advice(_: Context) -> str:
    return "Keep the OAuth provider, with its metadata and tokens, over connects instead of making a new one for each."


def _waits_for_get(finding: Finding) -> str:
    wait = _time(finding.context, "wait_ns") or finding.cost_s
    lock = " Authentication was on, so a lock in the OAuth code is the likely reason." if _authenticated(finding) else ""
    return (
        f"No request left the client until the head of the standalone GET's reply had arrived: {duration(wait)} of waiting "
        f"for a stream that the call doesn't need.{lock}"
    )


def _waits_for_get_advice(context: Context) -> str:
    return "Have the server answer the standalone GET at once, with its headers or with 405; the client should not wait for it."


def _slow_start(finding: Finding) -> str:
    start = _time(finding.context, "spawn_to_output_ns", "start_ns")
    reply = _time(finding.context, "initialize_ns", "reply_ns")
    figures = f"{duration(start or finding.cost_s)} from its start to its first output"
    against = f", against {duration(reply)} for the answer to initialize" if reply else ""
    return f"The server's process took {figures}{against}: the time went into starting it, not into MCP."


def _slow_start_advice(_: Context) -> str:
    return (
        "Install the server beforehand instead of through a package runner (npx, uvx), and import less at its start; "
        "keep the process for more than one session."
    )


_WORDS: dict[str, Words] = {
    "duplicate-request": Words(
        "Every request is sent twice", "every request is sent twice", _duplicate_request, _duplicate_request_advice
    ),
    "late-delivery": Words(
        "The result is there, but the call doesn't return",
        "the client has the result long before its call returns",
        _late_delivery,
        _late_delivery_advice,
    ),
    "hidden-listing": Words(
        "A tool listing hides in the call",
        "the client lists the tools again inside the call",
        _hidden_listing,
        _hidden_listing_advice,
    ),
    "connection-per-request": Words(
        "A new connection for each request",
        "each request opens a connection of its own",
        _connection_per_request,
        _connection_per_request_advice,
    ),
    "session-per-call": Words(
        "A new session for each call", "each call opens a session of its own", _session_per_call, _session_per_call_advice
    ),
    "discovery-repeated": Words(
        "OAuth metadata is fetched again and again",
        "the OAuth metadata is fetched again for each connect",
        _discovery_repeated,
        _discovery_repeated_advice,
    ),
    "waits-for-get": Words(
        "Requests wait for the standalone GET",
        "requests wait for the standalone GET's reply",
        _waits_for_get,
        _waits_for_get_advice,
    ),
    "slow-start": Words(
        "The server's process is slow to start", "the server's process is slow to start", _slow_start, _slow_start_advice
    ),
}

CODES: tuple[str, ...] = tuple(_WORDS)
"""Every code that has words; a test compares them with the causes that explain can name."""

DISPROOFS: dict[str, str] = {}
"""For each experiment's code, what it does and what it would have to show."""


# --- reading a context -----------------------------------------------------------------------------------------------


def _calls(finding: Finding) -> str:
    if finding.calls == finding.of_calls:
        return "Each call was"
    return f"{finding.calls} of {count(finding.of_calls, 'call')} {'was' if finding.calls == 1 else 'were'}"


def _number(context: Context, *names: str) -> float | None:
    for name in names:
        value = context.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _time(context: Context, *names: str) -> float | None:
    nanos = _number(context, *names)
    return None if nanos is None else nanos / 1e9


def _authenticated(finding: Finding) -> bool:
    return bool(finding.context.get("authenticated"))
