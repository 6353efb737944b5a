"""What the page is handed of cases: trials, ledgers, calls on the wire, and the causes that were found.

Design constraint: as in :mod:`mcpace.report.page_model`, which puts the page together.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model import Model

Tone = Literal["unknown", "same", "slower", "faster", "much-slower", "much-faster"]
"""How a case stands against the first subject."""


class Share(Model):
    """A layer of a stacked bar."""

    key: str
    seconds: float


class SummaryShown(Model):
    """Trials in figures."""

    first_s: float
    median_s: float
    mean_s: float
    min_s: float
    max_s: float


class Pin(Model):
    """An event that proves a finding, at its moment in a call."""

    finding: int
    """Index in :attr:`Page.findings`."""
    number: int
    """Its place in the finding's argument, from 1."""
    at_ms: float
    words: str


class Wait(Model):
    """A time in which a call only waited: no request, no work of the server, no reply."""

    from_ms: float
    to_ms: float
    kind: Literal["open", "nothing"]
    """Whether a reply stood open meanwhile."""
    words: str


class Exchange(Model):
    """A request with its reply."""

    label: str
    where: str
    """HTTP method and path."""
    status: int | None = None
    connection: int | None = None
    """By its order in this call, from 1."""
    phases: list[tuple[str, float, float]]
    """What it did, from, to: milliseconds."""
    marks: list[tuple[str, float]]
    repeats: int | None = None
    """The row, from 1, whose request this one sends again."""


class Call(Model):
    """A call on its time axis."""

    trial: int
    """From 1."""
    total_ms: float
    exchanges: list[Exchange]
    left_out: int = 0
    """Exchanges past the limit."""
    waits: list[Wait] = []
    pins: list[Pin] = []
    pins_of: str = ""
    """Said where the evidence is of another trial than this one."""


class CaseShown(Model):
    """One subject × target × operation."""

    subject: str
    target: str
    operation: str
    tool: str = ""
    trials_s: list[float] = []
    """The first is cold. Of very many trials every so manieth."""
    trials: int = 0
    summary: SummaryShown | None = None
    tone: Tone = "unknown"
    change: str = ""
    """Against the first subject, with its interval."""
    note: str = ""
    """The same in two words, where it matters."""
    state: str = ""
    """Why there are no (complete) figures."""
    reason: str = ""
    ledger: list[Share] = []
    split: list[Share] = []
    """The server's own account of its part."""
    split_words: str = ""
    call: Call | None = None
    better: int | None = None
    """Index of the case whose call is worth holding against this one's."""
    codes: list[int] = []
    """Findings of this case."""


class Place(Model):
    """Where a cause was seen."""

    target: str
    operations: str
    subjects: str


class EvidenceShown(Model):
    """One step of a finding's argument."""

    number: int
    at_s: float
    words: str
    event: int


class FindingShown(Model):
    """A cause, told once with every place where it was seen."""

    code: str
    title: str
    severity: Literal["high", "medium", "low"]
    confidence: str
    explanation: str
    cost: str
    places: list[Place]
    advice: str
    disproof: str
    alternatives: list[str] = []
    """Other causes that look the same, each with what would decide."""
    evidence: list[EvidenceShown]
    evidence_of: str
    case: int
    """Index of the case that the evidence is of."""
