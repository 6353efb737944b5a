"""Formats figures and names for readers.

Design constraint: input and output are plain text without markup. Figures have at most three significant digits,
because a handful of trials has no higher precision.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NO_BREAK = "\N{NO-BREAK SPACE}"
"""The space between a figure and its unit. A terminal prints it as an ordinary space."""

LONGEST = 400
"""Maximum number of characters shown of a peer's text."""


@dataclass(frozen=True)
class Unit:
    """A unit of time."""

    name: str
    seconds: float
    """Length of one unit in seconds."""
    word: str

    def figure(self, seconds: float) -> str:
        """``seconds`` in this unit, without its name."""
        return figure(seconds / self.seconds)


SECONDS = Unit("s", 1.0, "seconds")
MILLISECONDS = Unit("ms", 1e-3, "milliseconds")
MICROSECONDS = Unit("µs", 1e-6, "microseconds")


def unit_of(seconds: float) -> Unit:
    """The most readable unit for a single duration."""
    size = abs(seconds)
    if size >= 0.9995:
        return SECONDS
    return MILLISECONDS if size >= 0.9995e-3 or size == 0 else MICROSECONDS


def common_unit(durations: Iterable[float]) -> Unit:
    """A common unit for figures that are compared with each other, in which the smallest is still readable."""
    smallest = min((d for d in durations if d > 0), default=1.0)
    if smallest >= 0.1:
        return SECONDS
    return MILLISECONDS if smallest >= 0.1e-3 else MICROSECONDS


def duration(seconds: float) -> str:
    """``3.01 s``, ``4.1 ms``, ``870 µs``; zero is always ``0 s``."""
    if seconds == 0:
        return f"0{NO_BREAK}s"
    unit = unit_of(seconds)
    return f"{unit.figure(seconds)}{NO_BREAK}{unit.name}"


def figure(value: float) -> str:
    """A number to about three significant digits, whole above a hundred: ``0.05``, ``4.1``, ``13.5``, ``3,011``."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3f}"


def times(ratio: float) -> str:
    """A ratio: ``734×``, ``5.2×``, ``1.04×``."""
    if ratio >= 1000:
        return f"{float(f'{ratio:.2g}'):,.0f}×"
    return f"{ratio_figure(ratio)}×"


def ratio_figure(ratio: float) -> str:
    """A ratio without its sign, at the same precision as :func:`times`."""
    if ratio >= 99.5:
        return f"{ratio:,.0f}"
    if ratio >= 9.95:
        return f"{ratio:.0f}"
    return f"{ratio:.1f}" if ratio >= 1.995 else f"{ratio:.2f}"


def round_digits(value: float, digits: int = 5) -> float:
    """Rounds a value for a drawing, to more digits than are visible, which halves its size in JSON."""
    return float(f"{value:.{digits}g}")


def share(part: float, whole: float) -> str:
    """``97 %``; a share that isn't 0 is never rounded to 0 but written as ``<1 %``."""
    percent = 100 * part / whole if whole > 0 else 0.0
    if 0 < percent < 1:
        return f"<1{NO_BREAK}%"
    if 99 < percent < 100:
        return f"99{NO_BREAK}%"
    return f"{percent:.0f}{NO_BREAK}%"


def size(bytes_: float) -> str:
    """``812 B``, ``1.4 kB``, ``2.0 MB``."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if bytes_ >= limit:
            return f"{bytes_ / limit:.1f}{NO_BREAK}{unit}"
    return f"{bytes_:.0f}{NO_BREAK}B"


def count(number: float, one: str, many: str | None = None) -> str:
    """``1 request``, ``4 requests``, ``1.5 requests``."""
    whole = round(number, 1)
    text = f"{whole:,.0f}" if whole == int(whole) else f"{whole:,.1f}"
    return f"{text} {one if whole == 1 else many or one + 's'}"


def join_words(items: Sequence[str], word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def clean(text: object, limit: int = LONGEST) -> str:
    """A peer's text, sanitized for a terminal and a page: one line without control or invisible characters, and of
    limited length."""
    kept = []
    for character in str(text)[: limit * 4]:
        category = unicodedata.category(character)
        if character in "\n\r\t" or category in ("Zl", "Zp"):
            kept.append(" ")
        elif category not in ("Cc", "Cf", "Cs", "Co", "Cn"):
            kept.append(character)
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
