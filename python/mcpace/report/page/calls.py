"""A call's waterfall for the page: rows, phases, marks, and the events that prove its findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcpace.report.model.run import Case, DependencyLane, Finding, Phase, Waterfall, WaterfallExchange
from mcpace.report.page.model import Call, ExchangeRow, LaneShown, Pin, Wait
from mcpace.report.words.labels import role_words
from mcpace.report.words.quantities import clean, count

SHOWN_EXCHANGES = 60
SHOWN_MARKS = 24
"""Maximum number of drawn marks of an exchange."""
SHOWN_LANES = 12
SHOWN_BARS = 100
SHOWN_EVIDENCE = 8
WAIT_FROM = 0.03
"""Share of the call's time from which a wait is drawn."""
OPEN = "stream-open"
LISTENING = "listening"
"""Phase of a GET that outlasts the call: the server's own stream, for whose messages no call waits."""
LISTENING_WORDS = "the server's own stream, open"


def call(case: Case, codes: Mapping[str, int]) -> Call:
    """The drawn call of a case with a waterfall. ``codes`` are the indexes of the page's findings."""
    waterfall = case.waterfall
    assert waterfall is not None, "pairs() takes only cases that have one"
    shown = waterfall.exchanges[:SHOWN_EXCHANGES]
    rows = {exchange.exchange: number for number, exchange in enumerate(waterfall.exchanges, 1)}
    connections: dict[int, int] = {}
    for exchange in waterfall.exchanges:
        if exchange.connection is not None:
            connections.setdefault(exchange.connection, len(connections) + 1)
    return Call(
        trial=waterfall.trial + 1,
        total_ms=_round_ms(waterfall.total_ms),
        exchanges=[_exchange_view(exchange, rows, connections, waterfall.total_ms) for exchange in shown],
        left_out=len(waterfall.exchanges) - len(shown),
        lanes=[_lane_view(lane) for lane in waterfall.dependencies[:SHOWN_LANES]],
        waits=list(_waits(waterfall)),
        pins=list(_evidence_pins(case, codes)),
        pins_of=_pins_note(_drawable_findings(case), waterfall),
    )


def _exchange_view(
    exchange: WaterfallExchange, rows: Mapping[int, int], connections: Mapping[int, int], total_ms: float
) -> ExchangeRow:
    what, _, where = clean(exchange.label, 160).rpartition(" · ")
    return ExchangeRow(
        label=what or where,
        where=where if what else "",
        status=exchange.status,
        connection=None if exchange.connection is None else connections[exchange.connection],
        phases=[
            (_phase_name(exchange, one, total_ms), _round_ms(one.from_ms), _round_ms(one.to_ms))
            for one in exchange.phases
        ],
        marks=[(clean(one.label, 60).replace("-", " "), _round_ms(one.at_ms)) for one in exchange.marks[:SHOWN_MARKS]],
        repeats=None if exchange.duplicate_of is None else rows.get(exchange.duplicate_of),
    )


def _lane_view(lane: DependencyLane) -> LaneShown:
    bars = lane.spans[:SHOWN_BARS]
    left_out = lane.left_out + len(lane.spans) - len(bars)
    what = ("statement", "statements") if lane.kind == "database" else ("request", "requests")
    return LaneShown(
        name=clean(lane.name, 80),
        note=count(len(bars) + left_out, *what) + (f", {left_out:,} not drawn" if left_out else ""),
        bars=[(clean(span.pattern, 120), _round_ms(span.from_ms), _round_ms(span.to_ms)) for span in bars],
    )


def _waits(waterfall: Waterfall) -> Iterator[Wait]:
    """The times within the call in which no exchange was active."""
    named = [
        (_phase_name(exchange, phase, waterfall.total_ms), phase)
        for exchange in waterfall.exchanges
        for phase in exchange.phases
    ]
    busy = sorted((phase.from_ms, phase.to_ms) for name, phase in named if name not in (OPEN, LISTENING))
    reached = 0.0
    for start, end in [*busy, (waterfall.total_ms, waterfall.total_ms)]:
        start = min(start, waterfall.total_ms)
        if start - reached >= WAIT_FROM * waterfall.total_ms > 0:
            held = sum(_overlap_ms(reached, start, phase) for name, phase in named if name == OPEN)
            yield _wait(reached, start, is_open=held >= (start - reached) / 2)
        reached = max(reached, end)


def _phase_name(exchange: WaterfallExchange, phase: Phase, total_ms: float) -> str:
    outlasts = any(one.from_ms < 0 or one.to_ms > total_ms for one in exchange.phases)
    if exchange.label.startswith("GET ") and outlasts and phase.phase in ("server", OPEN):
        return LISTENING
    return clean(phase.phase, 40)


def _overlap_ms(start: float, end: float, phase: Phase) -> float:
    return max(0.0, min(end, phase.to_ms) - max(start, phase.from_ms))


def _wait(start: float, end: float, *, is_open: bool) -> Wait:
    words = "only an open reply" if is_open else "nothing on the wire"
    return Wait(from_ms=_round_ms(start), to_ms=_round_ms(end), kind="open" if is_open else "nothing", words=words)


def _evidence_pins(case: Case, codes: Mapping[str, int]) -> Iterator[Pin]:
    for finding in _drawable_findings(case):
        for number, item in enumerate(finding.evidence[:SHOWN_EVIDENCE], 1):
            at_ms = _round_ms(item.at_s * 1000)
            yield Pin(finding=codes[finding.code], number=number, at_ms=at_ms, words=role_words(item.role))


def _drawable_findings(case: Case) -> list[Finding]:
    """The findings whose evidence lies within a call. A finding outside every call has no trial, so its times belong to
    no call. In runs of older releases no finding has a trial."""
    told = any(finding.trial is not None for finding in case.findings)
    return [
        finding
        for finding in case.findings
        if finding.evidence and finding.calls and (finding.trial is not None or not told)
    ]


def _pins_note(findings: list[Finding], waterfall: Waterfall) -> str:
    """A note for the reader where evidence and drawing are of two trials, whose times differ a little."""
    for finding in findings:
        if finding.trial is None:
            return "The evidence is of the first call that showed it; in this one the same came at about those times."
        if finding.trial != waterfall.trial:
            return f"The evidence is of trial {finding.trial + 1}; in this one the same came at about those times."
    return ""


def _round_ms(ms: float) -> float:
    """Rounds to a tenth of a microsecond, the precision of the measurement."""
    return round(ms, 4)
