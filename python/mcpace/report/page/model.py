"""The page's model: a Run in the words and figures that the page shows. ``web/src/page.gen.ts`` is generated from this.

Design constraint: data only, and the only contract between Python and the browser. Python makes all statements about a
Run. The browser adds units and positions to figures, and labels to controls. All text is plain, clean and bounded; the
page inserts it as text. Members that end in ``_s`` are seconds, members that end in ``_ms`` milliseconds.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number


class Fact(Model):
    """A named fact."""

    name: str
    value: str


class Packages(Model):
    """Packages and runtime of a subject's environment."""

    label: str
    packages: list[str]


Tone = Literal["unknown", "same", "slower", "faster", "much-slower", "much-faster"]
"""Result of the comparison of a case with the first subject's."""


class Share(Model):
    """A part of a stacked bar."""

    key: str
    seconds: float


class SummaryShown(Model):
    """Summary of the trials."""

    first_s: float
    median_s: float
    mean_s: float
    min_s: float
    max_s: float


class Pin(Model):
    """An event that proves a finding, at its time in a call."""

    finding: int
    """Index in :attr:`Page.findings`."""
    number: int
    """Position in the finding's argument, from 1."""
    at_ms: float
    words: str


class Wait(Model):
    """An interval in which a call only waited: no request, no work of the server, no reply."""

    from_ms: float
    to_ms: float
    kind: Literal["open", "nothing"]
    """``open`` where a reply was open meanwhile."""
    words: str


class ExchangeRow(Model):
    """A request with its reply."""

    label: str
    where: str
    """HTTP method and path."""
    status: int | None = None
    connection: int | None = None
    """Number of the connection within this call, from 1."""
    phases: list[tuple[str, float, float]]
    """Activity, start and end of each phase; times in milliseconds."""
    marks: list[tuple[str, float]]
    repeats: int | None = None
    """Number of the row whose request this one repeats, from 1."""


class LaneShown(Model):
    """The requests of the server to one dependency within a call."""

    name: str
    note: str
    """Number of the requests, and how many are not drawn."""
    bars: list[tuple[str, float, float]]
    """Request, start and end of each; times in milliseconds."""


class Call(Model):
    """A call on its time axis."""

    trial: int
    """Number of the trial, from 1."""
    total_ms: float
    exchanges: list[ExchangeRow]
    left_out: int = 0
    """Number of exchanges that exceed the limit and are not shown."""
    lanes: list[LaneShown] = []
    """Requests of the server, by dependency."""
    waits: list[Wait] = []
    pins: list[Pin] = []
    pins_of: str = ""
    """Note for evidence that is of another trial than this one."""


class CaseShown(Model):
    """One subject × target × operation."""

    subject: str
    target: str
    operation: str
    tool: str = ""
    trials_s: list[float] = []
    """The first trial is cold. Where there are very many trials, only a regular sample of them."""
    trials: int = 0
    summary: SummaryShown | None = None
    tone: Tone = "unknown"
    change: str = ""
    """Change against the first subject, with its interval."""
    note: str = ""
    """Short form of the change, where the change matters."""
    state: str = ""
    """Reason why there are no (complete) figures."""
    reason: str = ""
    ledger: list[Share] = []
    split: list[Share] = []
    """The server's part by layer, as the server reports it."""
    server_notes: str = ""
    call: Call | None = None
    better: int | None = None
    """Index of a faster case whose call is shown for comparison."""
    codes: list[int] = []
    """Indexes of the findings of this case."""


class FindingPlace(Model):
    """A place where a cause was seen."""

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
    """A cause with all places where it was seen."""

    code: str
    title: str
    severity: Literal["high", "medium", "low"]
    confidence: str
    explanation: str
    cost: str
    places: list[FindingPlace]
    advice: str
    disproof: str
    alternatives: list[str] = []
    """Other causes that look the same, each with the deciding observation."""
    evidence: list[EvidenceShown]
    evidence_of: str
    case: int
    """Index of the case that the evidence is taken from."""


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
    """Whether the layer is a part of the outermost layer."""
    remark: str = ""


class LayersShown(Model):
    """One server's layers."""

    title: str
    layers: list[LayerShown]
    conditions: list[str]


class ProbeShown(Model):
    """A release that a bisection tested."""

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
    """Indexes of the probes in the order of their releases."""


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
    """The smallest change that would have been detected."""
    verdict: Literal["worse", "better", "same", "unclear"]
    words: str
    breach: bool
    first_s: list[float] = []
    second_s: list[float] = []
    """Trials of both sides, for a figure that is computed of trials."""
    first_median_s: float | None = None
    second_median_s: float | None = None
    """Medians of the warm trials."""
    advice: str = ""


class ComparisonShown(Model):
    """A comparison of two sides."""

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
    """Heading of the column with the ratios and their intervals."""
    rows: list[ComparedShown]
    notes: list[str]


class Distribution(Model):
    """Latencies in bins of equal width on a logarithmic scale."""

    per_decade: int
    first: int
    """Bin ``n`` begins at ``10 ** (n / per_decade)`` seconds."""
    counts: list[int]


class Percentiles(Model):
    """Exact percentiles, in seconds."""

    count: int
    mean: float
    min: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class Series(Model):
    """A load over time, as one list for each figure. A point stands for ``step_s`` seconds."""

    step_s: float
    at_s: list[float]
    ok: list[float]
    """Successful replies a second."""
    errors: list[int]
    due: list[float]
    p50_s: list[float | None]
    p90_s: list[float | None]
    p99_s: list[float | None]
    max_s: list[float | None]
    users: list[int]
    busy: list[float]
    warm_up: int
    """Number of points that belong to the warm-up."""


class OperationShown(Model):
    """Calls of one tool, or other requests of one kind."""

    name: str
    apart: bool
    rate: float
    good: int
    failed: int
    errors: str
    first_error: str
    latency: Percentiles | None = None
    sent: Percentiles | None = None
    """Times from when a call was sent, not from when it was due."""
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
    """Reason why the generator was the limit, where it was."""


class RoundShown(Model):
    """One round of one server."""

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
    """Processor time per call."""
    rss_bytes: int | None = None
    operations: list[OperationShown] = []
    remarks: list[str] = []
    program: str = ""


class ServersShown(Model):
    """A comparison of servers."""

    workload: str
    open: bool
    """Whether calls came at a rate that no server slows down. Servers then differ by latency, not by throughput."""
    servers: list[ServerShown]
    floor: ServerShown | None = None
    conditions: list[str]


class TimeRowShown(Model):
    """A part of the time inside a tool."""

    kind: Literal["dependency", "own", "library", "waiting", "others", "rest"]
    time_s: float
    share: str
    words: str


class FlameShown(Model):
    """The time inside a tool as a tree: the calls of its stacks, its waits for dependencies, and the rest.

    ``names``, ``places`` and ``kinds`` describe the frames, the other lists the nodes. A node stands before its
    children.
    """

    names: list[str]
    places: list[str]
    kinds: list[Literal["own", "library", "interpreter", "dependency", "others", "rest"]]
    parents: list[int]
    """Positions of the parents, counted from 1; 0 for the outermost nodes."""
    frames: list[int]
    """Indexes of the frames."""
    running_s: list[float]
    """Time in which a thread ran there, or within."""
    waiting_s: list[float]
    """Other time there, or within."""


class InsideShown(Model):
    """The time inside a tool: means over its calls."""

    title: str
    where: str
    whole_s: float
    """The time that the bars are parts of: that of a call, or the longest row where calls overlapped."""
    notes: list[str]
    about: list[str]
    """The time that looking inside adds to a call, and the meaning of sums over calls that overlap."""
    parts_title: str
    parts: list[TimeRowShown]
    lines: list[TimeRowShown]
    flame: FlameShown | None = None


class Part(Model):
    """A key of a ledger or a waterfall, with its meaning."""

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
    has_remarks: bool = False
    """Whether the last column is a remark in words instead of a figure."""
    bar_column: int | None = None
    """The column whose figures are drawn as bars, too."""
    bars: list[Number] = []
    """Length of each row's bar, as a share of the longest."""


class Page(Model):
    """Everything that the page shows of a run."""

    head: Head
    subjects: list[str]
    targets: list[str]
    cases: list[CaseShown]
    pairs: list[int]
    """Indexes of the cases whose calls are drawn, most informative first."""
    findings: list[FindingShown]
    loads: list[LoadShown] = []
    servers: ServersShown | None = None
    layers: LayersShown | None = None
    search: SearchShown | None = None
    comparison: ComparisonShown | None = None
    factors: FactorsShown | None = None
    tables: list[TableShown] = []
    inside: list[InsideShown] = []
    parts: list[Part]
    phases: list[Part]
    ledger_words: str = ""
    setup: list[Fact]
    packages: list[Packages]
    method: list[Fact]


class Sample(Model):
    """Measured values of one figure."""

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
    """Whether the measuring program ended without completing the run."""


class Entry(Model):
    """A file in the folder of runs."""

    id: str
    state: Literal["done", "live", "unreadable"]
    changed: float
    """Time of the last modification, in seconds since 1970."""
    head: Head | None = None
    reason: str = ""


class Listing(Model):
    """A folder of runs: those in progress first, then the newest."""

    folder: str
    entries: list[Entry]
    left_out: int = 0
    flights: list[Entry] = []
    """Recordings of servers behind the flight recorder."""


class Shell(Model):
    """Data of the page: a run, or the mark that `mcpace ui` serves the page."""

    view: Literal["run", "served"]
    page: Page | None = None
