"""Short descriptions of a run's keys: parts of the ledger, phases of an exchange, roles of evidence.

Every table is tolerant: an unknown key, from a newer release, is shown unchanged.
"""

from __future__ import annotations

from mcpace.report.model.run import Case, ServerProcessor, ServerSplit
from mcpace.report.words.quantities import clean, duration

PARTS: dict[str, str] = {
    "client.send": "in the client before its requests left",
    "connect": "opening connections",
    "request": "sending requests",
    "server": "in the server",
    "response": "receiving the result",
    "client.receive": "in the client after the result was there",
    "unaccounted": "in none of the layers",
}
"""The parts of a ledger in the order in which they occur in a call, each as the end of "97 % of it …"."""

PHASES: dict[str, str] = {
    "connect": "opening a connection",
    "request": "sending the request",
    "server": "waiting for the server",
    "response": "receiving the result",
    "stream-open": "result is there, reply still open",
}
"""The phases of an exchange in a waterfall, in the order in which they occur."""

ROLES: dict[str, str] = {
    "first-request": "request sent",
    "first-result": "its result complete",
    "first-reply-end": "its reply's end",
    "repeated-request": "the same request again",
    "repeated-result": "answered again",
    "result": "result complete",
    "reply-end": "reply's end",
    "listing": "list asked for",
    "listing-result": "its result complete",
    "call-started": "call started",
    "call-returned": "call returned",
    "connection-opened": "connection opened",
    "connection-closed": "connection closed",
    "session-begun": "session begun",
    "tool-called": "tool called",
    "discovery": "metadata fetched",
    "repeated-discovery": "metadata fetched again",
    "stream-request": "GET sent",
    "stream-head": "head of its reply",
    "held-request": "request that was held",
    "process-started": "process started",
    "first-stderr": "first line on stderr",
    "first-output": "first line on stdout",
    "initialize-answered": "initialize answered",
    "request-received": "request at the server",
    "other-answered": "an earlier one answered",
    "answered": "answered",
    "redirected": "sent on to another path",
    "refused": "refused",
    "connect-tried": "connection tried",
    "connect-failed": "connect failed",
    "first-write": "first part of the reply",
    "second-write": "the rest of it",
    "first-progress": "first progress",
    "stream-ended": "stream ended",
    "answer-began": "answer begins",
    "answer-taken": "the client has read all of it",
    "instrument-late": "the recorder was late",
    "tcp-before": "TCP statistics before",
    "tcp-after": "TCP statistics after",
    "given-up": "given up",
    "repeated-listing": "the same list fetched again",
    "reply-head": "head of the reply",
    "control-received": "control request at the server",
    "control-reply-head": "head of its reply",
    "sent-on": "sent on behind the gateway",
    "token-request": "token asked for",
    "token-granted": "token granted",
    "resume-request": "stream resumed",
    "refused-request": "request that was refused",
    "memory-before": "memory before",
    "memory-after": "memory after",
    "processor-before": "processor time before",
    "processor-after": "processor time after",
}
"""The roles of events in a finding's argument."""

CONFIDENCES: dict[str, str] = {
    "confirmed": "confirmed by experiment",
    "high": "certain",
    "medium": "probable",
    "low": "possible",
}
"""The degrees of confidence in a finding."""

REASONS: dict[str, str] = {
    "identical-bytes-and-id": "the same bytes with the same id, after a success",
    "identical-bytes-back-to-back": "the same bytes back to back, after a success",
    "order-inside-call": "the order of requests inside the call shows it",
    "repeated": "seen again and again",
    "seen-once": "seen once, so chance is not excluded",
    "return-follows-end": "the call returned when the reply or its connection ended",
    "nothing-on-the-wire": "nothing on the wire says why",
    "processor-time-unknown": "which layer used the time in the process was not recorded",
    "end-not-seen": "the client left before the reply's end, so whether the end was near is not known",
    "recording-incomplete": "the recording is incomplete, and what is missing may explain it",
    "another-looks-alike": "another cause would look the same",
    "nothing-passed": "no other request was answered meanwhile",
    "ended-in-waves": "equal calls ended in waves of one size, one call's time apart",
    "ready-before": "the time of the call alone is known, from elsewhere or from the server",
    "bursts-fill-buffers": "the replies came in bursts of a buffer's size",
    "acknowledgements-own-time": (
        "a pause of the size of a delayed acknowledgement, on connections that had carried replies before, and not the "
        "tool's own"
    ),
    "stream-compressed": "the stream was compressed on its way",
    "control-is-quick": "requests to the same server without it came back much sooner",
    "connects-quickly": "connecting to the same server took a small part of the time",
    "processor-time-read": "the processor time of the server's process was read at each request",
    "spread-behind": "behind the proxy the same events came one by one",
    "alone-at-gateway": "the gateway had only this request while it sent the others",
    "others-end-promptly": "other streams of the recording ended right after their result",
    "fixed-period": "it comes again at a fixed period",
    "never-answered": "what the client waits for never came",
    "same-moments": "many clients at the same moments, and nothing in between",
    "rises-with-count": "it rises steadily with the count; uncollected garbage would do so, too",
    "rises-with-tools": "it rises with the number of tools",
    "size-on-the-wire": "the size is what was on the wire",
    "grows-faster": "time grows with more than the size, over sizes that are far apart",
    "instrument-busy": "the instrument's own threads were at work when they were late",
    "instrument-kept": "the instrument's own threads were kept from running when they were late",
    "counted-by-kernel": "the kernel counted it on the connection",
    "stacks-sampled": "the stacks of the server's threads were sampled",
    "requests-reported": "the server's program reported each of its requests",
    "pauses-reported": "the runtime of the server's language reported its pauses",
    "timers-reported": "the server's program reported when it set timers, and when they went off",
    "alternative-measured": "the stacks show the library, and the quicker one was measured for one use of it",
    "connections-seen": "the kernel told of the server's connections",
    "same-without-progress": "requests without progress were given up after the same time",
    "calls-left-late": "calls that were due left late although a user was free",
    "threads-had-no-time": "the generator's threads had no time left",
    "tokens-counted": "the tokens were counted with a tokenizer",
    "vanishes-with-quick-ack": "it vanishes where acknowledgements are sent at once",
    "experiment-not-made": "the experiment that would confirm it could not be made",
}
"""Reasons for the confidence in a finding."""


def part_words(part: str) -> str:
    """Description of a part of the ledger."""
    return PARTS.get(part, clean(part, 40))


def role_words(role: str) -> str:
    """Description of an event's role."""
    return ROLES.get(role, clean(role, 40).replace("-", " "))


def confidence_words(confidence: str, reason: str = "") -> str:
    """The confidence, and its reason where the run has one: ``certain: seen again and again``."""
    sure = CONFIDENCES.get(confidence, clean(confidence, 40))
    why = REASONS.get(reason, clean(reason, 60).replace("-", " "))
    return f"{sure}: {why}" if why else sure


LAYERS: dict[str, str] = {
    "transport": "reading the request, sessions, writing the reply",
    "dispatch": "finding the tool, permissions, validation, serialisation",
    "service": "the tool's own code",
    "rest": "network, kernel and time that the server did not report",
}
"""The layers that a server reports, in the order in which a call passes them."""

DOUBTS: dict[str, str] = {
    "malformed": "it has a value that is no time",
    "longer-than-exchange": "its layers are longer than the whole exchange",
}
"""Reasons for rejecting a server's report of its layers."""


def split_parts(split: ServerSplit) -> dict[str, float]:
    """The layers by name. Runs of older releases have no ``rest``."""
    parts = {"transport": split.transport, "dispatch": split.dispatch, "service": split.service}
    return parts if split.rest is None else {**parts, "rest": split.rest}


WAITING_SHARE = 0.2
COMPUTING_SHARE = 0.8
"""Shares of the wall time below and above which a process is said to wait and to compute."""


def computing_words(processor_s: float, wall_s: float) -> str:
    """``its process computed for 2.1 ms and waited otherwise``, or ``nearly all the time, 51.7 ms``."""
    if processor_s >= COMPUTING_SHARE * wall_s:
        return f"its process computed nearly all the time, {duration(processor_s)}"
    rest = " and waited otherwise" if processor_s <= WAITING_SHARE * wall_s else ""
    return f"its process computed for {duration(processor_s)}{rest}"


def processor_words(processor: ServerProcessor) -> str:
    """``the server's process used 2.1 ms of processor time in 305 ms``, and of how many calls it is known.

    The processor time is longer than the wall time where several threads compute.
    """
    seldom = (
        "" if processor.calls == processor.of_calls else f" (known of {processor.calls} of {processor.of_calls} calls)"
    )
    used, wall = duration(processor.processor_s), duration(processor.wall_s)
    return f"the server's process used {used} of processor time in {wall}{seldom}"


def server_notes(case: Case) -> list[str]:
    """Sentences on the server's part of a case: its layers, and its processor time."""
    ledger = case.ledger_s
    if ledger is None:
        return []
    split = [split_words(ledger.server_split)] if ledger.server_split else []
    return split + ([processor_words(ledger.server_processor)] if ledger.server_processor else [])


def split_words(split: ServerSplit) -> str:
    """A server's report of its layers: ``the server says: transport 73 µs, dispatch 49 µs, service 20.1 ms, rest 95 µs
    (network, not reported)``."""
    sentences = []
    if split.reported is None or split.reported > split.rejected:
        layers = ", ".join(f"{name} {duration(seconds)}" for name, seconds in split_parts(split).items())
        seldom = ""
        if split.reported is not None and split.of_calls is not None and split.reported < split.of_calls:
            seldom = f", of {split.reported} of {split.of_calls} calls"
        rest = "" if split.rest is None else " (network, not reported)"
        sentences.append(f"the server says{seldom}: {layers}{rest}")
    if split.rejected:
        calls = f"{split.rejected} of {split.of_calls} calls" if split.of_calls else f"{split.rejected} calls"
        why = DOUBTS.get(split.doubt or "", "it can't be true")
        amount = f" ({duration(split.rejected_s)} a call)" if split.rejected_s else ""
        sentences.append(f"the server's account of {calls}{amount} is not believed: {why}")
    return "; ".join(sentences)
