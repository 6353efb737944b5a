"""A scale from values to percent of a plot's width, and its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mcpace.report.quantities import duration

LOGARITHMIC_FROM = 20.0
"""A largest value this many times the smallest asks for a logarithmic scale."""

INSET = 2.0
"""Percent kept free at both ends, so that no dot is cut."""


@dataclass(frozen=True)
class Scale:
    """Seconds to percent, linear or logarithmic."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def covering(cls, values: Iterable[float]) -> Scale:
        """A scale that shows all of ``values``: from zero where it is linear, over whole decades where not."""
        positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
        low, high = min(positive), max(positive)
        if high / low < LOGARITHMIC_FROM:
            return cls(0.0, high, logarithmic=False)
        return cls(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)), logarithmic=True)

    def percent(self, value: float) -> float:
        """Where a value lies, kept inside the plot."""
        if self.logarithmic:
            bounded = max(value, self.low)
            part = math.log(bounded / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(INSET + (100 - 2 * INSET) * min(max(part, 0.0), 1.0), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values with their percent: at most six."""
        if self.logarithmic:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = max(1, math.ceil((last - first) / 5))
            values = [10.0**power for power in range(first, last + 1, step)]
        else:
            values = linear_ticks(self.high)
        return [(self.percent(value), tick_words(value)) for value in values]


def linear_ticks(high: float) -> list[float]:
    """From zero in steps of 1, 2 or 5 × a power of ten, at most six of them."""
    raw = high / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    return [step * number for number in range(int(high / step + 1e-9) + 1)]


def tick_words(seconds: float) -> str:
    """``0``, ``50 ms``, ``2 s``: no digits that a round value doesn't need."""
    if seconds == 0:
        return "0"
    figure_, unit = duration(seconds).split("\N{NO-BREAK SPACE}")
    if "." in figure_:
        figure_ = figure_.rstrip("0").rstrip(".")
    return f"{figure_}\N{NO-BREAK SPACE}{unit}"
