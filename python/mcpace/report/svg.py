"""Small pieces of inline SVG.

Design constraint: horizontal places are percent of a picture without a view box, so that a picture follows its column
from a phone to a wide screen while text and dots keep their size; colours come from the page's classes only, since its
policy forbids inline styles. Every text passes :func:`markupsafe.escape` here.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

Place = tuple[float, str]
"""Percent and a label."""


def picture(height: int, label: str, parts: Iterable[Markup], *, kind: str) -> Markup:
    """One picture, which a keyboard reaches and a screen reader reads as ``label``."""
    return Markup('<svg class="{}" width="100%" height="{}" role="img" tabindex="0" aria-label="{}">{}</svg>').format(
        kind, height, label, Markup("").join(parts)
    )


def rect(x: float, width: float, y: float, height: float, kind: str, title: str = "") -> Markup:
    """A rectangle; ``x`` and ``width`` in percent."""
    return Markup('<rect class="{}" x="{}%" width="{}%" y="{}" height="{}">{}</rect>').format(
        kind, round(x, 2), round(width, 2), y, height, _title(title)
    )


def dot(x: float, y: float, radius: float, kind: str, title: str = "") -> Markup:
    """A dot."""
    return Markup('<circle class="{}" cx="{}%" cy="{}" r="{}">{}</circle>').format(
        kind, round(x, 2), y, radius, _title(title)
    )


def upright(x: float, top: float, bottom: float, kind: str, title: str = "") -> Markup:
    """A vertical line."""
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}">{}</line>').format(
        kind, round(x, 2), round(x, 2), top, bottom, _title(title)
    )


def text(x: float, y: float, content: str, kind: str) -> Markup:
    """A text, anchored by its class; ``x`` in percent."""
    return Markup('<text class="{}" x="{}%" y="{}">{}</text>').format(kind, round(x, 2), y, content)


def grid(ticks: Iterable[Place], height: int) -> Markup:
    """A line at each tick."""
    return Markup("").join(upright(at, 0, height, "grid") for at, _ in ticks)


def axis(ticks: list[Place]) -> Markup:
    """Labels of the ticks, the outermost kept inside the picture. Read by nobody but the eye: rows say their values."""
    labels = []
    for at, label in ticks:
        anchor = "start" if at < 6 else "end" if at > 94 else "middle"
        labels.append(text(at, 13, label, f"tick {anchor}"))
    return Markup('<svg class="axis" width="100%" height="18" aria-hidden="true">{}</svg>').format(
        Markup("").join(labels)
    )


def _title(title: str) -> Markup:
    return Markup("<title>{}</title>").format(escape(title)) if title else Markup("")
