"""The page's model: a Run in the words and figures that the page shows. ``web/src/page.gen.ts`` is generated from this.

Design constraint: data only, and the only contract between Python and the browser. Python makes all statements about a
Run. The browser adds units and positions to figures, and labels to controls. All text is plain, clean and bounded; the
page inserts it as text. Members that end in ``_s`` are seconds, members that end in ``_ms`` milliseconds.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model


class Fact(Model):
    """A name and what it is."""

    name: str
    value: str


class Packages(Model):
    """Packages and runtime of a subject's environment."""

    label: str
    packages: list[str]


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
    """Activity, start and end of each phase; times in milliseconds."""
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
    """Short form of the change, where it matters."""
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
    """Steps in the order of releases, from the first end of the search to the other."""


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
    """Names of the two sides."""
    warnings: list[str]
    rows: list[ComparedShown]
    notes: list[str]
    """Rows that only one side has."""


class FactorsShown(Model):
    """Experiments on a live target: one thing changed at a time."""

    target: str
    interval: str
    """Over the ratios and their intervals."""
    rows: list[ComparedShown]
    notes: list[str]


class Distribution(Model):
    """Latencies in bins of equal width on a logarithmic scale."""

    per_decade: int
    first: int
    """Bin ``n`` begins at ``10 ** (n / per_decade)`` seconds."""
    counts: list[int]


class Percentiles(Model):
    """The exact ones."""

    count: int
    mean: float
    min: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class Series(Model):
    """A load over time, a column a figure; a point stands for ``step_s``."""

    step_s: float
    at_s: list[float]
    ok: list[float]
    """Good replies a second."""
    errors: list[int]
    due: list[float]
    p50_s: list[float | None]
    p90_s: list[float | None]
    p99_s: list[float | None]
    max_s: list[float | None]
    users: list[int]
    busy: list[float]
    warm_up: int
    """How many points of it are the warm-up."""


class OperationShown(Model):
    """A tool's calls, or another request."""

    name: str
    apart: bool
    rate: float
    good: int
    failed: int
    errors: str
    first_error: str
    latency: Percentiles | None = None
    sent: Percentiles | None = None
    """From when a call was sent, not due."""
    failed_latency: Percentiles | None = None
    distribution: Distribution | None = None


class Threshold(Model):
    """A limit that the user set."""

    text: str
    met: bool
    words: str


class LoadShown(Model):
    """A load on a target."""

    target: str
    model: str
    rate: float
    failed: int
    failed_share: str
    latency: Percentiles | None = None
    operations: list[OperationShown]
    series: Series | None = None
    thresholds: list[Threshold]
    facts: list[Fact]
    limit: str
    """Why the generator was the limit, where it was."""


class RoundShown(Model):
    """One server's turn."""

    rate: float
    p50_s: float | None = None
    p99_s: float | None = None
    cpu_s: float | None = None


class ServerShown(Model):
    """One server under the same load as the others."""

    name: str
    rate: float | None = None
    ratio: str = ""
    failed: int = 0
    rounds: list[RoundShown] = []
    latency: Percentiles | None = None
    cpu_s: float | None = None
    """Processor time a call."""
    rss_bytes: int | None = None
    operations: list[OperationShown] = []
    remarks: list[str] = []
    program: str = ""


class ServersShown(Model):
    """A comparison of servers."""

    workload: str
    open: bool
    """Whether calls came at a rate that no server slows down: then latency is what tells servers apart."""
    servers: list[ServerShown]
    floor: ServerShown | None = None
    conditions: list[str]


class Part(Model):
    """A key of a ledger or a waterfall, and what it means."""

    key: str
    words: str


class Head(Model):
    """Summary of a run, for the list of runs and the top of its page."""

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
    """Data of the page: a run, or the mark that `mcpace ui` serves the page."""

    view: Literal["run", "served"]
    page: Page | None = None
