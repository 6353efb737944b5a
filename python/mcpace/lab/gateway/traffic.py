"""Traffic of one side of a recording: requests, headers, sessions and connections, for comparing two paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpace.report.model.gateway import GatewayChange

Side = Literal["front", "back"]
Headers = dict[str, str]

OWN_VALUES = frozenset({"date", "host", "mcp-session-id", "traceparent", "x-request-id", "set-cookie"})
"""Headers whose values say nothing of a gateway: they differ from one request to the next, or between two addresses."""
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
"""Headers of one connection or one message, which each hop chooses."""
SESSION_ID = "mcp-session-id"
OPENING = ("initialize", "server/discover")
"""Requests by which a client learns of a server; ``initialize`` also begins a session."""


@dataclass
class Exchange:
    """One HTTP request and its reply."""

    http_method: str
    connection: int
    start_ns: int
    request_headers: Headers
    methods: list[str] = field(default_factory=list)
    """JSON-RPC methods of the request's messages."""
    reply_headers: Headers = field(default_factory=dict)
    end_ns: int | None = None


@dataclass
class Traffic:
    """Exchanges of one side, in order, and its number of processes over stdio."""

    exchanges: list[Exchange]

    @classmethod
    def of(cls, events: Iterable[dict[str, Any]], side: Side) -> Traffic:
        """Reads the events of a recording. A recorder notes the headers of replies at its back only, since it passes
        them on unchanged."""
        found: dict[int, Exchange] = {}
        for recorded in events:
            ((kind, event),) = recorded["event"].items()
            number = event.get("ex", -1) if isinstance(event, dict) else -1
            if kind == "request-head" and event["side"] == side:
                found[number] = Exchange(
                    event["method"], event["conn"], recorded["at"], _headers(event.get("headers", ()))
                )
            exchange = found.get(number)
            if exchange is None:
                continue
            if kind == "request-end" and event["side"] == side:
                messages = event.get("messages", ())
                exchange.methods = [str(one["method"]) for one in messages if one.get("method") is not None]
            elif kind == "reply-head" and "headers" in event:
                exchange.reply_headers = _headers(event["headers"])
            elif kind == "reply-end" and event["side"] == side:
                exchange.end_ns = recorded["at"]
        return cls(list(found.values()))

    def asking(self, method: str) -> list[Exchange]:
        """The exchanges whose request has the JSON-RPC method."""
        return [one for one in self.exchanges if method in one.methods]

    def method_counts(self) -> Counter[str]:
        """Number of requests by JSON-RPC method; ``GET`` and ``DELETE`` by their HTTP method."""
        counts = Counter(method for one in self.exchanges for method in one.methods)
        counts.update(one.http_method for one in self.exchanges if one.http_method != "POST")
        return counts

    def connections(self) -> int:
        """Number of connections with at least one request."""
        return len({one.connection for one in self.exchanges})

    def sessions(self) -> int:
        """Number of sessions: requests that begin one."""
        return len(self.asking("initialize"))

    def has_session_ids(self) -> bool:
        """Whether the server gave its client a session id."""
        return any(SESSION_ID in one.reply_headers for one in self.exchanges)

    def busy_ns(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Time in which at least one POST was open, of those that began in a stretch of time; and their number."""
        spans = sorted(
            (one.start_ns, one.end_ns)
            for one in self.exchanges
            if one.http_method == "POST" and one.end_ns is not None and start_ns <= one.start_ns <= end_ns
        )
        busy_ns, reached = 0, start_ns
        for start, end in spans:
            busy_ns += max(0, min(end, end_ns) - max(start, reached))
            reached = max(reached, min(end, end_ns))
        return busy_ns, len(spans)


def reply_changes(direct: Traffic, through: Traffic) -> list[GatewayChange]:
    """Differences between the replies to tool calls: their form, their headers, and the session id."""
    if not direct.exchanges or not through.exchanges:
        return []  # stdio has no headers
    changes = []
    theirs, ours = (_values(one.reply_headers for one in side.asking("tools/call")) for side in (direct, through))
    forms = [_form(side.get("content-type")) for side in (theirs, ours)]
    if theirs and ours and forms[0] != forms[1]:
        changes.append(GatewayChange(code="reply-form", direct=forms[0], through=forms[1]))
    changes += _header_changes("reply-header", theirs, ours, {"content-type", SESSION_ID})
    had, has = direct.has_session_ids(), through.has_session_ids()
    if had != has:
        changes.append(GatewayChange(code="session-removed" if had else "session-added"))
    return changes


def request_changes(client: Traffic, behind: Traffic, sessions: int, start_ns: int = 0) -> list[GatewayChange]:
    """Differences between the requests of the client and those of the gateway to the server since ``start_ns``.

    ``sessions`` is how often the client connected since then.
    """
    changes = []
    # A session from before, without a later one, serves all sessions of the client.
    before_start = behind.sessions()
    behind = Traffic([one for one in behind.exchanges if one.start_ns >= start_ns])
    begun = behind.sessions() or before_start
    if begun and begun != sessions:
        changes.append(GatewayChange(code="sessions", direct=str(sessions), through=str(begun)))
    if not client.exchanges:
        return changes  # a client over stdio has neither headers nor connections
    theirs, ours = (_values(one.request_headers for one in side.asking("tools/call")) for side in (client, behind))
    if client.asking("tools/call") and behind.asking("tools/call"):
        changes += _header_changes("request-header", theirs, ours, set())
    before, after = client.method_counts(), behind.method_counts()
    for method in sorted(before | after):
        if before[method] != after[method]:
            changes.append(
                GatewayChange(code="requests", name=method, direct=str(before[method]), through=str(after[method]))
            )
    numbers = [f"{side.connections()} for {len(side.exchanges)}" for side in (client, behind)]
    if client.connections() != behind.connections():
        changes.append(GatewayChange(code="connections", direct=numbers[0], through=numbers[1]))
    return changes


def _header_changes(
    code: Literal["reply-header", "request-header"],
    theirs: dict[str, set[str]],
    ours: dict[str, set[str]],
    skipped: set[str],
) -> list[GatewayChange]:
    changes = []
    for name in sorted((theirs.keys() | ours.keys()) - skipped - HOP_BY_HOP):
        before, after = theirs.get(name, set()), ours.get(name, set())
        if name in OWN_VALUES and before and after:
            continue
        # A value that differs within one path differs for reasons of its own.
        if before == after or (len(before) > 1 and after) or (len(after) > 1 and before):
            continue
        if name in OWN_VALUES:
            before, after = ({"present"} if values else set() for values in (before, after))
        texts = [next(iter(sorted(values)), "") for values in (before, after)]
        changes.append(GatewayChange(code=code, name=name, direct=texts[0], through=texts[1]))
    return changes


def _values(headers: Iterable[Headers]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in headers:
        for name, value in one.items():
            found.setdefault(name, set()).add(value)
    return found


def _headers(pairs: Iterable[list[str]]) -> Headers:
    return {name.lower(): value for name, value in pairs}


def _form(values: set[str] | None) -> str:
    kinds = sorted({value.partition(";")[0].strip() for value in values or ()})
    return " or ".join(kinds)
