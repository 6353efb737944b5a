"""What the page is handed: a run in the words and figures that it shows. ``web/src/page.gen.ts`` is made from this.

Design constraint: data only, and the one contract between Python and the browser. What is said of a run is made on this
side; on the other one figures get their units and places, and controls their words. All text is plain and clean, and
bounded: the page puts it down as text and nothing else. Times are seconds in members that end in ``_s`` and
milliseconds in those that end in ``_ms``.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model import Model
from mcpace.report.page_model_cases import CaseShown, FindingShown
from mcpace.report.page_model_comparisons import ComparisonShown, FactorsShown, LayersShown, SearchShown
from mcpace.report.page_model_load import LoadShown, Series, ServersShown
from mcpace.report.page_model_setup import Fact, Packages


class Part(Model):
    """A key of a ledger or a waterfall, and what it means."""

    key: str
    words: str


class Head(Model):
    """What a run is, in a list of runs and at the top of its page."""

    kind: str
    started: str
    mcpace: str
    partial: bool
    verdict: list[str]
    subjects: str = ""
    targets: str = ""
    machine: str = ""


class TableShown(Model):
    """A small table in words; the first column names the rows."""

    title: str
    where: str = ""
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = []


class Page(Model):
    """A run."""

    head: Head
    subjects: list[str]
    targets: list[str]
    cases: list[CaseShown]
    pairs: list[int]
    """Cases whose calls have most to show, first what matters most."""
    findings: list[FindingShown]
    loads: list[LoadShown] = []
    servers: ServersShown | None = None
    layers: LayersShown | None = None
    search: SearchShown | None = None
    comparison: ComparisonShown | None = None
    factors: FactorsShown | None = None
    tables: list[TableShown] = []
    parts: list[Part]
    phases: list[Part]
    ledger_words: str = ""
    setup: list[Fact]
    packages: list[Packages]
    method: list[Fact]


class Sample(Model):
    """A figure as it was measured."""

    group: str
    row: str
    values: list[float]
    unit: Literal["s", "per second"]


class Live(Model):
    """A run in progress."""

    head: Head
    step: str
    done: int
    steps: int | None = None
    planned_s: float | None = None
    notes: list[str]
    samples: list[Sample]
    series: Series | None = None
    ended: bool = False
    """Whether its program is gone, without a word."""


class Entry(Model):
    """A file in the folder of runs."""

    id: str
    state: Literal["done", "live", "unreadable"]
    changed: float
    """When, seconds since 1970."""
    head: Head | None = None
    reason: str = ""


class Listing(Model):
    """A folder of runs: those in progress first, then the newest."""

    folder: str
    entries: list[Entry]
    left_out: int = 0


class Shell(Model):
    """What the bundle finds in its page: a run, or nothing but the word that it is served."""

    view: Literal["run", "served"]
    page: Page | None = None
