"""The sentences for findings: the one place where a code becomes words for people.

Design constraint: a sentence is built from the finding's own figures and context, and a member of the context that is
missing (an older or newer run) only makes the sentence shorter. Nothing here decides whether something is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpace.report.quantities import clean, count, duration, listed, share, size
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
    """``2.0 s + 1 extra request + 640 B a call``: only what it does cost, and in how many calls unless in all."""
    costs = [duration(finding.cost_s)] if finding.cost_s > 0 else []
    if finding.cost_requests >= 0.05:
        costs.append(count(finding.cost_requests, "extra request"))
    if finding.cost_bytes >= 1:
        costs.append(size(finding.cost_bytes))
    if not costs:
        return "no time of its own"
    seldom = f", in {finding.calls} of {finding.of_calls}" if finding.calls < finding.of_calls else ""
    return " + ".join(costs) + " a call" + seldom


# --- what each code says ---


def _duplicate_request(finding: Finding) -> str:
    context = finding.context
    sentence = f"{_calls(finding)} sent twice with the same JSON-RPC id"
    if _number(context, "after_reply_end") != 0:
        drained = _between(finding, "first-result", "first-reply-end") or finding.cost_s
        sentence += (
            f"; the client read the first reply's stream to its end ({duration(drained)}) before it took the second"
        )
    if _number(context, "executions") == 0:
        methods = context.get("methods")
        known = [clean(method, 40) for method in methods[:4]] if isinstance(methods, list) and methods else ["it"]
        return f"{sentence}. The server answered {listed(known)} twice."
    return f"{sentence}. The tool ran twice."


def _duplicate_request_advice(_: Context) -> str:
    return (
        "Use a release of the client SDK that sends each request once (python: 1.14.0 or newer, see python-sdk #1274); "
        "until then, tools with side effects act twice a call."
    )


def _late_delivery(finding: Finding) -> str:
    late = _between(finding, "result", "call-returned") or _time(finding.context, "longest_ns") or finding.cost_s
    waited = {
        "reply-end": "it waited for the end of the reply's stream.",
        "connection-close": "it waited for the connection to close.",
        "nothing-seen": "nothing on the wire says what it waited for.",
    }.get(str(finding.context.get("released_by")), "the client had it and waited on.")
    return f"The result was complete on the wire {duration(late)} before the client's call returned: {waited}"


def _late_delivery_advice(context: Context) -> str:
    if context.get("released_by") == "nothing-seen":
        return "Profile the client between the result and the return: it computed, or waited for something of its own."
    return (
        "Have the client return as soon as the result's event is complete; where you own the server, "
        "end the reply right after the result."
    )


def _hidden_listing(finding: Finding) -> str:
    return (
        f"{_calls(finding, 'held up')} by a tools/list that the client sent between the result and the return: "
        f"{duration(finding.cost_s)} for a listing that nobody asked for."
    )


def _hidden_listing_advice(_: Context) -> str:
    return (
        "List the tools once before the first call, so that the client already has their output schemas, "
        "and keep the session for the calls after it."
    )


def _connection_per_request(finding: Finding) -> str:
    connections = _number(finding.context, "connections")
    requests = _number(finding.context, "requests")
    seen = "Almost every request opened a connection of its own"
    if connections and requests:
        seen = f"{count(connections, 'connection')} for {count(requests, 'request')}"
    closer = {"client": "the client", "server": "the server", "instrument": "the recorder"}.get(
        str(finding.context.get("closed_by"))
    )
    left = _number(finding.context, "left_early")
    if left:
        return (
            f"{seen}: the client broke off {count(left, 'reply', 'replies')} before the end, after which a connection "
            f"can't be used again. Setting up new ones took {duration(finding.cost_s)} a call."
        )
    why = f"{closer} closed those that could have been used again" if closer else "open ones stayed unused"
    return f"{seen}, though {why}: {duration(finding.cost_s)} a call for setting them up again."


def _connection_per_request_advice(context: Context) -> str:
    if context.get("closed_by") == "server":
        return "Leave keep-alive on at the server, and at every proxy before it."
    return (
        "Share one HTTP client over the session, and read each reply to its end so that its connection can be reused."
    )


def _session_per_call(finding: Finding) -> str:
    sessions = _number(finding.context, "sessions")
    calls = _number(finding.context, "tool_calls")
    seen = "A new session was begun for each call"
    if sessions and calls:
        seen = f"{count(sessions, 'session')} for {count(calls, 'tool call')}"
    processes = _number(finding.context, "processes")
    spawned = f" and {count(processes, 'server process', 'server processes')} started" if processes else ""
    return f"{seen}{spawned}: initialize ran again each time, {duration(finding.cost_s)} a call."


def _session_per_call_advice(_: Context) -> str:
    return "Begin the session once and make all calls in it."


def _discovery_repeated(finding: Finding) -> str:
    repeats = _number(finding.context, "repeats")
    often = f" {count(repeats, 'time')}" if repeats else ""
    return (
        f"The OAuth metadata under /.well-known was fetched{often} again although nothing had changed: "
        f"{duration(finding.cost_s)} a call."
    )


def _discovery_repeated_advice(_: Context) -> str:
    return "Keep the OAuth provider, with its metadata and tokens, over connects instead of making a new one for each."


def _waits_for_get(finding: Finding) -> str:
    wait = _between(finding, "stream-request", "stream-head") or _time(finding.context, "longest_ns") or finding.cost_s
    why = {
        "authorization-lock": " Authentication was on: a lock in its code is held across the GET.",
        "stream-first": " The client opens that stream before anything else, by design.",
    }.get(str(finding.context.get("gate")), "")
    return (
        f"No request left the client until the head of the standalone GET's reply had arrived, {duration(wait)}: "
        f"it waited for a stream that the call doesn't need.{why}"
    )


def _waits_for_get_advice(_: Context) -> str:
    return (
        "Have the server answer the standalone GET at once, with its headers or with 405; "
        "a client should not hold its requests for it."
    )


def _slow_start(finding: Finding) -> str:
    longest = _time(finding.context, "longest_ns") or finding.cost_s
    program = clean(finding.context.get("program") or "The server's process", 60)
    typical = _time(finding.context, "typical_answer_ns")
    against = f", against {duration(typical)} for its later answers" if typical else ""
    runner = " It is a package runner, which may fetch packages first." if finding.context.get("package_runner") else ""
    return f"{program} took {duration(longest)} until its first answer{against}.{runner}"


def _slow_start_advice(context: Context) -> str:
    if context.get("package_runner"):
        return "Install the server beforehand and start it directly, and keep its process for more than one session."
    return "Import less at the server's start, and keep its process for more than one session."


def _delayed_ack(finding: Finding) -> str:
    context = finding.context
    low, high = _number(context, "from_s") or 0.035, _number(context, "to_s") or 0.06
    share_ = _number(context, "share")
    seen = f"{share(share_, 1)} of the calls" if share_ else "Calls"
    sentence = f"{seen} took {duration(low)} to {duration(high)}, on connections that had carried calls before"
    quick, mean = _number(context, "quick_mean_s"), _number(context, "mean_s")
    if quick is None or mean is None:
        return f"{sentence}: as long as a peer's kernel delays an acknowledgement."
    return (
        f"{sentence}. With acknowledgements sent at once (TCP_QUICKACK on the client's sockets, the server unchanged) "
        f"they are gone: {duration(quick)} a call in the mean instead of {duration(mean)}. The server sends a reply in "
        "two small writes, and the second waits for the first one's acknowledgement."
    )


def _delayed_ack_advice(_: Context) -> str:
    return "Set TCP_NODELAY on the sockets that the server accepts, or have it send each reply in one write."


_WORDS: dict[str, Words] = {
    "duplicate-request": Words(
        "Every request is sent twice",
        "every request is sent twice",
        _duplicate_request,
        _duplicate_request_advice,
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
    "waits-for-get": Words(
        "Requests wait for the standalone GET",
        "requests wait for the standalone GET's reply",
        _waits_for_get,
        _waits_for_get_advice,
    ),
    "slow-start": Words(
        "The server's process is slow to start",
        "the server's process is slow to start",
        _slow_start,
        _slow_start_advice,
    ),
    "delayed-ack": Words(
        "Replies wait for a delayed acknowledgement",
        "the end of each reply waits for a delayed TCP acknowledgement",
        _delayed_ack,
        _delayed_ack_advice,
    ),
}

CODES: tuple[str, ...] = tuple(_WORDS)
"""Every code that has words; a test compares them with the causes that explain can name."""

LOAD_CODES = ("delayed-ack",)
"""Those that load results prove, not recordings."""

DISPROOFS: dict[str, str] = {
    "count-executions-at-server": "Count executions in the server's own log: wrong if each request arrives once.",
    "call-without-output-schema": "Call a tool without an output schema, or list first: wrong if the listing stays.",
    "end-reply-with-result": "Let the server end its reply right after the result: wrong if the call stays as slow.",
    "measure-client-processor-time": "Measure the client's processor time in the call: wrong if it was computing.",
    "reuse-one-client": "Repeat with one client object for all requests: wrong if connections stay as many.",
    "hold-one-session": "Repeat with one session held open: wrong if each call still begins its own.",
    "connect-twice-with-same-credentials": (
        "Connect twice with the same credentials and a warm cache: wrong if the second asks nothing."
    ),
    "refuse-standalone-stream": "Answer the GET with 405 at once: wrong if requests are still held.",
    "repeat-without-authentication": "Repeat without authentication: wrong if requests are still held.",
    "start-again-warm": (
        "Start again from a warm package cache and read the process's processor time: tells a download from imports."
    ),
    "acknowledge-at-once": (
        "Repeat the load with TCP_QUICKACK on the client's sockets, or TCP_NODELAY on the server's: "
        "wrong if calls stay as slow."
    ),
}
"""For each experiment's code, what it does and what it would show."""

LOAD_DISPROOFS = ("acknowledge-at-once",)


# --- reading a context ---


def _calls(finding: Finding, verb: str = "") -> str:
    """``Each call was``, ``2 of 5 calls were``, with the verb's participle where one is given."""
    verb = f" {verb}" if verb else ""
    if finding.calls == finding.of_calls:
        return f"Each call was{verb}"
    return f"{finding.calls} of {count(finding.of_calls, 'call')} {'was' if finding.calls == 1 else 'were'}{verb}"


def _number(context: Context, name: str) -> float | None:
    value = context.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _time(context: Context, name: str) -> float | None:
    nanos = _number(context, name)
    return None if nanos is None else nanos / 1e9


def _between(finding: Finding, earlier: str, later: str) -> float | None:
    """Seconds between the first events of two roles; ``None`` where the evidence has not both in this order."""
    first = {item.role: item.at_s for item in reversed(finding.evidence)}
    if earlier not in first or later not in first or first[later] <= first[earlier]:
        return None
    return first[later] - first[earlier]
