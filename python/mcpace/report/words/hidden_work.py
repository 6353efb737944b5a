"""Words for work that is done twice or that was not requested."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    Amplification,
    ConstantCostPerRequest,
    DiscoveryRepeated,
    DuplicateRequest,
    HiddenListing,
    RepeatedListing,
    RetriedExecution,
    SerialFanOut,
    SessionPerCall,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, calls, cost_words, seconds, seconds_between
from mcpace.report.words.quantities import clean, count, duration, join_words, size


def _duplicate_request(finding: Finding, context: DuplicateRequest) -> str:
    sentence = f"{calls(finding)} sent twice with the same JSON-RPC id"
    if context.after_reply_end != 0:
        drained = seconds_between(finding, "first-result", "first-reply-end") or finding.cost_s
        sentence += (
            f"; the client read the first reply's stream to its end ({duration(drained)}) before it took the second"
        )
    if context.executions == 0:
        methods = context.methods
        known = [clean(method, 40) for method in methods[:4]] if methods else ["it"]
        return f"{sentence}. The server answered {join_words(known)} twice."
    return f"{sentence}. The tool ran twice."


def _hidden_listing(finding: Finding, context: HiddenListing) -> str:
    return (
        f"{calls(finding, 'held up')} by a tools/list that the client sent between the result and the return: "
        f"{duration(finding.cost_s)} for a listing that nobody asked for."
    )


def _session_per_call(finding: Finding, context: SessionPerCall) -> str:
    sessions = context.sessions
    called = context.tool_calls
    seen = "A new session was begun for each call"
    if sessions and called:
        seen = f"{count(sessions, 'session')} for {count(called, 'tool call')}"
    processes = context.processes
    spawned = f" and {count(processes, 'server process', 'server processes')} started" if processes else ""
    if finding.calls:
        return f"{seen}{spawned}: initialize ran again each time, {duration(finding.cost_s)} a call."
    return (
        f"{seen}{spawned}: initialize ran again each time, {duration(finding.total_s)} in all. Separate runs of a "
        "program look the same."
    )


def _discovery_repeated(finding: Finding, context: DiscoveryRepeated) -> str:
    repeats = context.repeats
    often = f" {count(repeats, 'time')}" if repeats else ""
    return (
        f"The OAuth metadata under /.well-known was fetched again{often} although nothing had changed: "
        f"{cost_words(finding)}."
    )


def _retried_execution(finding: Finding, context: RetriedExecution) -> str:
    repeats, both = context.repeats, context.both_answered
    tool = f" of {clean(context.tool, 60)}" if context.tool else ""
    what = f"{count(repeats, 'call')}{tool}" if repeats else f"Calls{tool}"
    ran = f" Both calls were answered in {count(both, 'case')}: the tool ran twice." if both else ""
    if context.trigger == "at-once":
        verb = "was" if repeats == 1 else "were"
        return f"{what} {verb} sent a second time at the same moment, with the same arguments and another id.{ran}"
    timeout = seconds(context.timeout_ns)
    after = f" after {duration(timeout)}" if timeout else ""
    return f"{what} had no answer{after}, when the client gave up and called again with the same arguments.{ran}"


def _retried_execution_advice(context: RetriedExecution) -> str:
    if context.trigger == "at-once":
        return "Look in the host for two places that dispatch the call; until then, tools with side effects act twice."
    return (
        "Raise the client's time-out past what the tool takes, have the tool report progress, or make it safe to run "
        "twice: the first run may go on."
    )


def _repeated_listing(finding: Finding, context: RepeatedListing) -> str:
    repeats, tool_calls = context.repeats, context.tool_calls
    methods = context.methods
    what = join_words([clean(method, 40) for method in methods[:4]]) if methods else "A list"
    often = f" {count(repeats, 'time')}" if repeats else ""
    beside = f", beside {count(tool_calls, 'tool call')}" if tool_calls else ""
    largest = context.largest_bytes
    each = f" (up to {size(largest)} each)" if largest else ""
    return f"{what} was fetched again{often} and brought what the client already had{each}{beside}."


def _amplification(finding: Finding, context: Amplification) -> str:
    typical = context.typical
    each = f"{count(typical, 'request')} behind the gateway" if typical else "Several requests behind the gateway"
    methods = context.methods
    split = ""
    if methods:
        parts = [f"{clean(name, 40)} {methods[name]:,}" for name in list(methods)[:6]]
        split = f"; of all calls: {', '.join(parts)}"
    sessions = context.sessions
    begun = " The gateway begins sessions for them." if sessions else ""
    return f"One tool call causes {each}{split}.{begun}"


def _amplification_advice(context: Amplification) -> str:
    if context.sessions:
        return "Have the gateway hold its sessions with the servers behind it, and keep what they list."
    return "Have the gateway keep what it asks the servers behind it for, rather than ask for each call."


def _serial_fan_out(finding: Finding, context: SerialFanOut) -> str:
    servers, longest, at_once = context.servers, seconds(context.longest_ns), seconds(context.at_once_ns)
    asked = count(servers, "server") if servers else "several servers"
    took = f": {duration(longest)}, where asking at once would take {duration(at_once)}" if longest and at_once else ""
    return (
        f"The gateway asked {asked} the same, one after another, so that its answer took as long as all together{took}."
    )


def _constant_cost_per_request(finding: Finding, context: ConstantCostPerRequest) -> str:
    floor, without = seconds(context.floor_ns), seconds(context.without_ns)
    what = {"token": " that has a token", "session": " that has a session"}.get(context.follows or "", "")
    kinds = context.kinds
    any_ = f", whichever of {count(kinds, 'kind')} it is," if kinds else ""
    seen = f"Every request{what}{any_} takes the server"
    if floor is None or without is None:
        return f"{seen} the same extra time, notifications included."
    if context.follows == "processor-time":
        return f"Every request{any_} costs the server at least {duration(floor)} of processor time."
    if context.follows == "everything":
        return f"{seen} at least {duration(floor)}; connecting to the server takes {duration(without)}."
    return f"{seen} at least {duration(floor)}, notifications included; one without takes {duration(without)}."


def _constant_cost_per_request_advice(context: ConstantCostPerRequest) -> str:
    if context.follows == "session":
        return "Make sessions cheap to find at the server or proxy: look at how their ids are signed, opened or stored."
    if context.follows in ("everything", "processor-time"):
        return "Look at what the server or a proxy before it does for each request: middleware, logging, a lookup."
    return "Verify tokens at the server itself, or keep what the authorization server said of one for a short while."


WORDS: tuple[Words[Any], ...] = (
    Words(
        DuplicateRequest,
        "Every request is sent twice",
        "every request is sent twice",
        _duplicate_request,
        (
            "Use a release of the client SDK that sends each request once (python: 1.14.0 or newer, see python-sdk "
            "#1274); until then, tools with side effects act twice for each call."
        ),
    ),
    Words(
        HiddenListing,
        "A tool listing hides in the call",
        "the client lists the tools again inside the call",
        _hidden_listing,
        (
            "List the tools once before the first call, so that the client already has their output schemas, "
            "and keep the session for the calls after it."
        ),
    ),
    Words(
        SessionPerCall,
        "A new session for each call",
        "each call opens a session of its own",
        _session_per_call,
        (
            "Where one program makes the calls, begin the session once and make all calls in it; separate runs of a "
            "program can't share one."
        ),
    ),
    Words(
        DiscoveryRepeated,
        "OAuth metadata is fetched again and again",
        "the OAuth metadata is fetched again for each connect",
        _discovery_repeated,
        "Keep one OAuth provider, with its metadata and tokens, for all connects.",
    ),
    Words(
        RetriedExecution,
        "A tool is called again while the first call may be running",
        "tools are called again while the first call may be running",
        _retried_execution,
        _retried_execution_advice,
    ),
    Words(
        RepeatedListing,
        "An unchanged list is fetched again and again",
        "the client fetches a list that it already has",
        _repeated_listing,
        "Keep the list for the session, and fetch it anew when the server says notifications/tools/list_changed.",
    ),
    Words(
        Amplification,
        "A gateway sends several requests for one call",
        "the gateway sends several requests for each call",
        _amplification,
        _amplification_advice,
    ),
    Words(
        SerialFanOut,
        "A gateway asks its servers one after another",
        "the gateway asks its servers one after another",
        _serial_fan_out,
        "Have the gateway ask the servers behind it at the same time.",
    ),
    Words(
        ConstantCostPerRequest,
        "Every request takes the same extra time",
        "every request takes the same extra time, whatever it asks",
        _constant_cost_per_request,
        _constant_cost_per_request_advice,
    ),
)
