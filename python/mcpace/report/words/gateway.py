"""Words for a gateway: the verdict, and each thing that a gateway changes."""

from __future__ import annotations

from mcpace.report.model.gateway import AddedQuantile, GatewayChange, GatewayFacts, GatewayLoad
from mcpace.report.model.run import Run
from mcpace.report.words import drift
from mcpace.report.words.quantities import clean, count, duration, join_words, ratio_figure

LONGEST = 80
MOST_NAMED = 4
OPERATIONS = {"connect": "connecting", "list": "a list", "call": "a call"}
CHANGES: dict[str, str] = {
    "revision": "protocol revision",
    "transport": "transport",
    "server": "name of the server",
    "session-added": "session id",
    "session-removed": "session id",
    "sessions": "sessions at the server",
    "reply-form": "form of the reply to a call",
    "reply-header": "reply header",
    "request-header": "request header",
    "connections": "connections, for requests",
    "processes": "processes of the server, for sessions",
    "requests": "requests",
    "stream-held-back": "progress of a call",
    "stream-lost": "progress of a call",
    "stream-failed": "progress of a call",
}
"""The changed thing, by its code."""
REMARKS: dict[str, str] = {
    "sessions": "sessions of clients share sessions at the server, or get further ones",
    "connections": "connections are pooled or opened anew",
    "processes": "clients share processes of the server, or get further ones",
    "stream-held-back": "held back: the client hears of progress late",
    "stream-lost": "lost: the client hears of no progress",
    "stream-failed": "a call that sends progress fails",
}


def sentences(run: Run) -> list[str]:
    """The verdict: the added time of a call, the throughput, and the changes that matter."""
    facts = run.gateway
    if facts is None or not (facts.quantiles or run.comparison):
        return ["Nothing was measured."]
    told = [text for operation in ("call", "list") if (text := _added_words(facts, operation))][:1]
    if not told:
        told = [_failure_words(run)]
    if facts.load is not None and not facts.load.error:
        told.append(_load_words(facts.load))
    told += _change_sentences(facts)
    if run.comparison is not None:
        told += drift.sentences(run.comparison.drifts)
    return told


def change_cells(change: GatewayChange) -> tuple[str, str, str]:
    """A change as a row: the thing, its value on the direct path, and its value through the gateway."""
    name = clean(change.name, LONGEST)
    thing = f"{CHANGES.get(change.code, change.code)} {name}".rstrip()
    direct, through = (clean(text, LONGEST) or "–" for text in (change.direct, change.through))
    if change.code in ("session-added", "session-removed"):
        direct, through = ("none", "given") if change.code == "session-added" else ("given", "none")
    return thing, direct, through


def interval_words(low_s: float | None, high_s: float | None) -> str:
    """``0.41 to 0.52 ms``; a dash without an interval."""
    return "–" if low_s is None or high_s is None else f"{signed(low_s)} to {signed(high_s)}"


def signed(seconds: float) -> str:
    """A difference with its sign: ``+0.41 ms``."""
    return f"{'−' if seconds < 0 else '+'}{duration(abs(seconds))}"


def notes(facts: GatewayFacts) -> list[str]:
    """Sentences below the table of changes: its limits, and the meaning of some rows."""
    told = []
    if facts.not_observed:
        told.append(
            f"The gateway's own requests were not observed: {clean(facts.not_observed, 300)}. Request headers, "
            "sessions, connections and requests are therefore not compared."
        )
    if facts.stream_not_tried:
        told.append(f"No stream was tried: {clean(facts.stream_not_tried, 300)}.")
    remarks = [
        f"{CHANGES[code]}: {REMARKS[code]}"
        for code in dict.fromkeys(one.code for one in facts.changes)
        if code in REMARKS
    ]
    return [*told, *(f"{text[0].upper()}{text[1:]}." for text in remarks)]


def _added_words(facts: GatewayFacts, operation: str) -> str:
    found = {one.percentile: one for one in facts.quantiles if one.operation == operation}
    typical = found.get("p50")
    if typical is None:
        return ""
    tail = found.get("p99") or found.get("p90")
    added_s = typical.through_s - typical.direct_s
    name = OPERATIONS[operation]
    if not _is_clear(typical):
        interval = interval_words(typical.low_s, typical.high_s)
        return f"The gateway adds no time that was seen to {name} at the median ({interval})."
    verb = "adds" if added_s >= 0 else "saves"
    text = f"The gateway {verb} {duration(abs(added_s))} to {name} at the median ({duration(typical.direct_s)} directly"
    if tail is not None and tail is not typical and _is_clear(tail):
        text += f"), and {signed(tail.through_s - tail.direct_s)} at the {tail.percentile[1:]}th percentile"
        return f"{text}."
    return f"{text})."


def _is_clear(quantile: AddedQuantile) -> bool:
    return quantile.low_s is None or quantile.high_s is None or quantile.low_s > 0 or quantile.high_s < 0


def _failure_words(run: Run) -> str:
    failed = next((case for case in run.cases if case.error), None)
    if failed is None:
        return "No call was measured on both paths."
    return f"Through the gateway, {failed.operation} fails: {clean(failed.error or '', 300)}"


def _load_words(load: GatewayLoad) -> str:
    if not load.through_rps:
        return f"Under {count(load.vus, 'user')} no call through it was answered in turns of {load.turn_s:g} s."
    text = (
        f"Under {count(load.vus, 'user')} it passes {load.through_rps:,.0f} calls a second; the server takes "
        f"{load.direct_rps:,.0f} directly"
    )
    if load.ratio is not None and load.low is not None and load.high is not None:
        interval = (
            f"ratio of the turns {ratio_figure(load.ratio)}, from {ratio_figure(load.low)} to {ratio_figure(load.high)}"
        )
        text += f" ({interval})" if load.high < 1 or load.low > 1 else f" ({interval}: no difference was seen)"
    if load.through_errors:
        text += f", and {count(load.through_errors, 'call')} through the gateway failed"
    return f"{text}."


def _change_sentences(facts: GatewayFacts) -> list[str]:
    told = []
    by_code = {one.code: one for one in facts.changes}
    for code, words in (
        ("stream-failed", "A call that sends progress fails through the gateway"),
        ("stream-lost", "The gateway passes on no progress of calls"),
        ("stream-held-back", "The gateway holds progress back until the answer comes"),
    ):
        if code in by_code:
            told.append(f"{words}.")
    if (one := by_code.get("revision")) is not None:
        told.append(f"Clients get revision {clean(one.through, 20)} through it, and {clean(one.direct, 20)} directly.")
    lost = [
        clean(one.name, 40) for one in facts.changes if one.code == "request-header" and one.direct and not one.through
    ]
    if lost:
        more = [f"{len(lost) - MOST_NAMED} more"] if len(lost) > MOST_NAMED else []
        told.append(
            f"It does not pass on {count(len(lost), 'request header')}: {join_words([*lost[:MOST_NAMED], *more])}."
        )
    if (one := by_code.get("sessions")) is not None:
        told.append(f"{one.direct} sessions of the client were {one.through} at the server.")
    return told
