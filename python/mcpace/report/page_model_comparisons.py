"""What the page is handed of things held against each other: runs, layers, releases, one change at a time.

Design constraint: as in :mod:`mcpace.report.page_model`, which puts the page together.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model import Model


class LayerShown(Model):
    """One layer of a server."""

    name: str
    meaning: str
    batches_s: list[float]
    median_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    over: str = ""
    ratio: str = ""
    adds_s: float | None = None
    share: str = ""
    inside: bool = False
    """Whether the outermost layer is made of it."""
    remark: str = ""


class LayersShown(Model):
    """One server's layers."""

    title: str
    layers: list[LayerShown]
    conditions: list[str]


class ProbeShown(Model):
    """A release that a bisection ran."""

    version: str
    verdict: Literal["good", "bad", "untestable"]
    medians_s: list[float | None]
    note: str


class SearchShown(Model):
    """A bisection."""

    words: str
    operations: list[str]
    probes: list[ProbeShown]
    """In the order of the search."""
    ordered: list[int]
    """The same by release, from the end that the search began with to the other."""


class ComparedShown(Model):
    """One figure of one case, on both sides."""

    place: str
    metric: str
    first: str
    second: str
    ratio: float | None = None
    """Second over first."""
    low: float | None = None
    high: float | None = None
    ratio_words: str
    sees: str
    """The smallest change that would have been seen."""
    verdict: Literal["worse", "better", "same", "unclear"]
    words: str
    breach: bool
    first_s: list[float] = []
    second_s: list[float] = []
    """Trials of both sides, of a figure that is made of them."""
    first_median_s: float | None = None
    second_median_s: float | None = None
    """Over the warm ones."""
    advice: str = ""


class ComparisonShown(Model):
    """Two sides, held against each other."""

    first: str
    second: str
    """What the sides are."""
    warnings: list[str]
    rows: list[ComparedShown]
    notes: list[str]
    """What only one side has."""


class FactorsShown(Model):
    """Experiments on a live target: one thing changed at a time."""

    target: str
    interval: str
    """Over the ratios and their intervals."""
    rows: list[ComparedShown]
    notes: list[str]
