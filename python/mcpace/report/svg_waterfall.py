"""One call's exchanges on one time axis, a row each, as bars of their phases with the result's moment marked.

A reply's stream often stays open long after the call has returned. The axis ends a little after the return, and a bar
that goes on is cut there with the time of its end beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from mcpace.report import svg
from mcpace.report.labels import PHASES, phase_words
from mcpace.report.quantities import clean, duration
from mcpace.report.run import Phase, Waterfall, WaterfallExchange
from mcpace.report.scale import linear_ticks, tick_words

HEIGHT = 30
MIDDLE = 19
"""Where the bars lie; above them is room for a word."""
BEYOND = 1.12
"""How far the axis goes, in lengths of the call."""

SHOWN_EXCHANGES = 40
NAMED_FROM = 25.0
"""Percent that a bar needs to have its time written at it."""

NARROWEST = 0.35
"""Percent: a shorter phase would not be seen."""


@dataclass(frozen=True)
class Row:
    """One exchange."""

    label: str
    detail: str
    repeated: bool
    picture: Markup


@dataclass(frozen=True)
class Drawing:
    """A call."""

    rows: list[Row]
    axis: Markup
    left_out: int
    """Exchanges past the limit."""


def draw(waterfall: Waterfall) -> Drawing:
    """All rows with their axis."""
    end_ms = max(waterfall.total_ms, 1e-6) * BEYOND
    ticks = [(_percent(value * 1000, end_ms), tick_words(value)) for value in linear_ticks(end_ms / BEYOND / 1000)]
    shown = waterfall.exchanges[:SHOWN_EXCHANGES]
    numbers = {exchange.exchange: number for number, exchange in enumerate(waterfall.exchanges, 1)}
    rows = [_row(exchange, waterfall.total_ms, end_ms, ticks, numbers) for exchange in shown]
    return Drawing(rows, svg.axis(ticks), len(waterfall.exchanges) - len(shown))


def same_scale(total_ms: float, other_ms: float) -> Markup:
    """A call as a bar on the scale of the drawing of a longer one."""
    width = max(100 * total_ms / (other_ms * BEYOND), NARROWEST)
    label = f"this call's {duration(total_ms / 1000)} on the scale of the slow call"
    return svg.picture(10, label, [svg.rect(0, width, 1, 8, "same-scale", label)], kind="ruler")


def _row(
    exchange: WaterfallExchange,
    total_ms: float,
    end_ms: float,
    ticks: list[svg.Place],
    numbers: dict[int, int],
) -> Row:
    parts = [svg.grid(ticks, HEIGHT)]
    for phase in exchange.phases:
        parts += _phase(phase, end_ms)
    for mark in exchange.marks:
        if 0 <= mark.at_ms <= end_ms:
            title = f"{clean(mark.label, 60)} at {duration(mark.at_ms / 1000)}"
            at = _percent(mark.at_ms, end_ms)
            is_result = mark.label == "result"
            parts.append(svg.dot(at, MIDDLE, 4.5 if is_result else 2, "result" if is_result else "mark", title))
    parts.append(
        svg.upright(_percent(total_ms, end_ms), 10, HEIGHT, "return", f"call returned at {duration(total_ms / 1000)}")
    )
    repeated = exchange.duplicate_of is not None
    words = _words(exchange)
    return Row(
        label=clean(exchange.label, 120),
        detail=_detail(exchange, numbers),
        repeated=repeated,
        picture=svg.picture(HEIGHT, words, parts, kind="fall repeated" if repeated else "fall"),
    )


def _phase(phase: Phase, end_ms: float) -> list[Markup]:
    start, stop = max(phase.from_ms, 0.0), min(phase.to_ms, end_ms)
    if stop < start:
        return []
    left = _percent(start, end_ms)
    width = max(_percent(stop, end_ms) - left, NARROWEST)
    known = phase.phase if phase.phase in PHASES else "other"
    open_ = known == "stream-open"
    title = f"{phase_words(phase.phase)}: {duration((phase.to_ms - phase.from_ms) / 1000)}"
    title += f", from {duration(phase.from_ms / 1000)} to {duration(phase.to_ms / 1000)}"
    height = 8 if open_ else 16
    drawn = [svg.rect(left, width, MIDDLE - height / 2, height, f"phase {known}", title)]
    if phase.to_ms > end_ms * 1.001:
        drawn.append(svg.text(100, 9, f"open to {duration(phase.to_ms / 1000)} →", "said end"))
    elif open_ and width >= NAMED_FROM:
        words = f"{phase_words(phase.phase)}: {duration((phase.to_ms - phase.from_ms) / 1000)}"
        drawn.append(svg.text(left + width / 2, 9, words, "said middle"))
    elif known == "server" and width >= NAMED_FROM:
        drawn.append(
            svg.text(left + width / 2, MIDDLE + 4, f"server {duration((stop - start) / 1000)}", "inside middle")
        )
    return drawn


def _percent(at_ms: float, end_ms: float) -> float:
    return 100 * at_ms / end_ms


def _detail(exchange: WaterfallExchange, numbers: dict[int, int]) -> str:
    facts = []
    if exchange.duplicate_of is not None:
        facts.append(f"sent again, as row {numbers.get(exchange.duplicate_of, '?')}")
    if exchange.status is not None:
        facts.append(str(exchange.status))
    if exchange.connection is not None:
        facts.append(f"connection {exchange.connection}")
    return " · ".join(facts)


def _words(exchange: WaterfallExchange) -> str:
    phases = [
        f"{phase_words(phase.phase)} {duration(phase.from_ms / 1000)} to {duration(phase.to_ms / 1000)}"
        for phase in exchange.phases
    ]
    return f"{clean(exchange.label, 120)}: {'; '.join(phases) or 'no phases seen'}"
