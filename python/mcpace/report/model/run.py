"""The Run: one experiment's result, schema ``mcpace.run/1``.

A Run is a self-contained file. A history is a folder of Runs.

Design constraint: data only. This module measures nothing and does not know how a Run is rendered; sentences are made
in :mod:`mcpace.report.words`. Fields that end in ``_s`` are seconds. Fields that end in ``_ns`` are nanoseconds of the
recording machine's ``CLOCK_MONOTONIC``.

Readers ignore unknown members, so that a Run of a later minor release still loads.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from mcpace.report.model.answer import Answer, UnreadRecording
from mcpace.report.model.base import Facts, Model, Number, Whole
from mcpace.report.model.comparison import Comparison
from mcpace.report.model.drift import Listing
from mcpace.report.model.factors import Factor
from mcpace.report.model.gateway import GatewayFacts
from mcpace.report.model.inside import ToolTime
from mcpace.report.model.ladder import Ladder
from mcpace.report.model.layers import LayerFacts, LayersFacts
from mcpace.report.model.limits import ClientLimits
from mcpace.report.model.load import LoadCase
from mcpace.report.model.processes import HostProcesses
from mcpace.report.model.recording import RecordingFacts
from mcpace.report.model.replicas import ReplicasFacts
from mcpace.report.model.servers import ServerComparison, ServerFacts
from mcpace.report.model.start import CheckFacts, StartFacts
from mcpace.report.model.tokens import ContextTokens, TokenLimit, ToolTokens

SCHEMA: Literal["mcpace.run/1"] = "mcpace.run/1"
MOST_BYTES = 64 * 2**20
"""Maximum size of a run's file. A load of one day, with a point a second, needs a third of it."""
MOST_ERRORS = 1_000
"""Maximum number of validation errors that are listed in order to name the first."""

Kind = Literal[
    "clients",
    "measure",
    "bisect",
    "demo",
    "load",
    "servers",
    "layers",
    "compare",
    "gate",
    "explain",
    "recording",
    "check",
    "processes",
    "limits",
    "gateway",
    "replicas",
    "query",
    "recordings",
]
Operation = Literal["provider", "connect", "list", "call", "disconnect"]


class Machine(Model):
    """The machine of the run, as far as it matters for comparing runs."""

    system: str
    """Kernel name and release."""
    architecture: str
    cpu: str
    """Model name of the processor."""
    cores: Whole
    """Number of logical processors that the process may use."""
    memory_bytes: Whole
    python: str


class Subject(Model):
    """The measured subject: a release of an SDK, or mcpace's own instrumented client (``sdk="mcpace-client"``)."""

    sdk: str
    version: str | None = None
    mode: str | None = None

    def label(self) -> str:
        """The subject as users type it: ``python@1.12.1``, ``python@2.3.0:legacy``."""
        text = self.sdk if self.version is None else f"{self.sdk}@{self.version}"
        return text if self.mode is None else f"{text}:{self.mode}"


class Summary(Model):
    """Summary of the trials. The first trial is cold (imports, discovery, registration) and is separate. The other four
    figures are computed of the trials after it, or of it alone where there is no other."""

    first_s: Number
    median_s: Number
    mean_s: Number
    min_s: Number
    max_s: Number

    @classmethod
    def of(cls, trials_s: list[float]) -> Summary:
        """Summarizes at least one trial."""
        warm = trials_s[1:] or trials_s
        return cls(
            first_s=trials_s[0],
            median_s=statistics.median(warm),
            mean_s=statistics.fmean(warm),
            min_s=min(warm),
            max_s=max(warm),
        )


class Ledger(Model):
    """The time of an operation by parts: means over the warm trials, in seconds. The parts add up to the mean."""

    client_send: Number = Field(alias="client.send")
    """Work of the client before it sends a request."""
    connect: Number
    """TCP and TLS handshakes of new connections."""
    request: Number
    """From the first byte of a request to its last."""
    server: Number
    """From the last byte of the request at the server to the first byte of the message with the result."""
    response: Number
    """From the first byte of that message to its last."""
    client_receive: Number = Field(alias="client.receive")
    """From the complete result at the client to the return of the operation, or to the client's next request."""
    unaccounted: Number
    """The recorder's own forwarding time, and time that could not be attributed."""
    server_split: ServerSplit | None = None
    """``server`` by layer, where the server reports its layers."""
    server_processor: ServerProcessor | None = None
    """Processor time of the server's process, where the process is watched."""

    def total(self) -> float:
        """Sum of the parts."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """The parts by their dotted names, in the order in which they occur in a call."""
        return {
            "client.send": self.client_send,
            "connect": self.connect,
            "request": self.request,
            "server": self.server,
            "response": self.response,
            "client.receive": self.client_receive,
            "unaccounted": self.unaccounted,
        }


class ServerProcessor(Model):
    """Processor time of the server's process beside its wall time: means over the calls for which it is known, in
    seconds. It is known where the process served one request at a time."""

    processor_s: Number
    """Processor time of all threads, and of the process's descendants."""
    wall_s: Number
    """The ledger's ``server`` of the same calls."""
    calls: Whole
    """Number of these calls."""
    of_calls: Whole
    """Number of all calls."""


class ServerSplit(Model):
    """``server`` by layer, as the server reports it: means over the warm trials, in seconds. The layers and ``rest``
    add up to ``server``."""

    transport: Number
    """Time in the transport, without reading and writing, which ``request`` and ``response`` contain. It may therefore
    be less than the server reported."""
    dispatch: Number
    service: Number
    rest: Number | None = None
    """The network, the kernel, and time that the server did not report. Absent in runs of older releases."""
    reported: Whole | None = None
    """Number of calls for which the server reported its layers."""
    of_calls: Whole | None = None
    """Number of warm calls. The time of calls without a report, or with an impossible one, is in ``rest``."""
    rejected: Whole = 0
    """Number of impossible reports."""
    doubt: Literal["malformed", "longer-than-exchange"] | None = None
    """Reason for rejecting the first impossible report."""
    rejected_s: Number | None = None
    """Mean of the times in the impossible reports."""


class Evidence(Model):
    """One event of the recording that proves a finding."""

    at_s: Number
    """Seconds since the call's start."""
    role: str
    """Role of the event in the finding's argument, such as ``first-request`` or ``repeated-request``."""
    event: Whole
    """Index of the event in the recording."""


class Alternative(Model):
    """Another cause that would look the same in the recording."""

    code: str
    decided_by: str
    """Code of the experiment that would distinguish the two causes."""


class Finding(Model):
    """A named cause. ``code`` is one of the closed list in docs/findings.md."""

    code: str
    severity: Literal["high", "medium", "low"]
    confidence: str
    """``high``, ``medium`` or ``low``."""
    confidence_reason: str = ""
    """Code of the reason for this confidence."""
    cost_s: Number
    """Cost in seconds a call, as a mean over the affected warm calls of this case."""
    cost_requests: Number = 0.0
    """Extra requests a call."""
    cost_bytes: Number = 0.0
    """Extra bytes a call."""
    calls: Whole
    """Number of trials of this case that show the cause."""
    of_calls: Whole
    """Number of trials of this case."""
    context: Facts = {}
    """Facts of the cause, from the first affected call."""
    evidence: list[Evidence] = []
    trial: Whole | None = None
    """Index of the trial that the evidence is taken from."""
    first_only: bool = False
    """Whether only the first repetitions of sessions show the cause. Its cost is the mean over those."""
    disproof: str = ""
    """Code of the experiment that would disprove the finding."""
    alternatives: list[Alternative] = []
    """Other causes that would look the same."""
    total_s: Number = 0.0
    """Total cost in seconds of a cause that was seen outside the calls; ``calls`` is 0 then."""
    total_requests: Number = 0.0
    """Total number of extra requests of a cause that was seen outside the calls."""
    total_bytes: Number = 0.0
    """Total number of extra bytes of a cause that was seen outside the calls."""
    advice: str = ""
    """Recommended action, in one sentence."""


class Change(Model):
    """Comparison of this case with the first subject's case of the same target and operation."""

    against: str
    """Label of the first subject."""
    ratio: Number
    """A typical trial of this case over a typical trial of the first subject's case (Hodges–Lehmann)."""
    low: Number
    high: Number
    """95 % interval of the ratio over the warm trials, distribution-free (rank-sum bounds)."""
    difference_s: Number
    """Median of this case less the median of the first subject's case."""


class Phase(Model):
    """A phase of an exchange in a waterfall, in milliseconds since the call's start."""

    phase: str
    from_ms: Number
    to_ms: Number


class Mark(Model):
    """A moment in a waterfall."""

    at_ms: Number
    label: str


class WaterfallExchange(Model):
    """One request with its reply, as a row of a waterfall."""

    exchange: Whole
    connection: Whole | None = None
    label: str
    """HTTP method and path, or the JSON-RPC method with its id and tool."""
    status: Whole | None = None
    phases: list[Phase] = []
    marks: list[Mark] = []
    duplicate_of: Whole | None = None


class DependencySpan(Model):
    """A request that the server made, in milliseconds since the call's start."""

    pattern: str
    """The request, without the parts that differ from one to the next: ``GET /users/{}``."""
    from_ms: Number
    to_ms: Number


class DependencyLane(Model):
    """The requests to one dependency, as a row of a waterfall."""

    kind: Literal["http", "database", "other"]
    name: str
    spans: list[DependencySpan] = []
    left_out: Whole = 0
    """Number of further requests."""


class Waterfall(Model):
    """One call's exchanges on one time axis."""

    trial: Whole
    """Index of the trial in the case."""
    total_ms: Number
    exchanges: list[WaterfallExchange] = []
    dependencies: list[DependencyLane] = []
    """Requests that the server made within the call, where it was looked into and no other call overlaps this one."""


class Case(LoadCase):
    """One subject × target × operation."""

    subject: Subject
    target: str
    operation: Operation
    tool: str | None = None
    trials_s: list[Number] = []
    """Seconds of every trial that returned, in order. Where a session repeats the operation, the trial is the median of
    the session's later repetitions."""
    first_s: list[Number] = []
    """Seconds of the first repetition in each session. Empty where sessions performed the operation once, and in runs
    of releases that did not distinguish the two."""
    starts_process: bool = False
    """Whether connecting started the server's process, so that its time is the server's start-up."""
    listing_bytes: Whole | None = None
    """For the operation ``list``: size of the tools' descriptions as JSON, in bytes."""
    listing_tools: Whole | None = None
    """For the operation ``list``: number of the tools."""
    tools: list[ToolTokens] | None = None
    """For the operation ``list``: the tokens of each tool. Absent from the JSON of other cases, as are the three
    members that follow."""
    context_tokens: ContextTokens | None = None
    """For the operation ``list`` in a check of a configuration: tokens of everything but tools."""
    result_tokens: Whole | None = None
    """For the operation ``call``: tokens of the largest result."""
    start: StartFacts | None = None
    """For the operation ``connect``, in a check of a configuration: how the server started."""
    listing: Listing | None = None
    """For the operation ``list``: the listing, which comparisons read. Absent from the JSON of other cases."""
    result_kinds: list[str] | None = None
    """For the operation ``call``: the kinds of content in the last result, such as ``text`` and ``structured``. Absent
    from the JSON of other cases."""
    summary: Summary | None = None
    ledger_s: Ledger | None = None
    change: Change | None = None
    findings: list[Finding] = []
    waterfall: Waterfall | None = None
    """The slowest warm trial."""
    inside: ToolTime | None = None
    """For the operation ``call``: where the time inside the tool went, where the server was looked into. Absent from
    the JSON of other cases."""
    server: ServerFacts | None = None
    """Facts of one server in a comparison of servers; absent from the JSON of other cases."""
    median_s: Number | None = None
    """Median over the batches of a layer. Absent from the JSON of other cases, as are the two members that follow."""
    over_direct_s: Number | None = None
    """Median of a layer less the median of the direct call."""
    layer: LayerFacts | None = None
    failures: list[str] = []
    """Errors of the failed trials, in order."""
    unsupported: str | None = None
    """Reason why this release doesn't support the operation; there are no trials and no error then."""
    error: str | None = None
    """Reason why there is no (complete) measurement."""
    given_up: bool = False
    """For the operation ``connect``: whether further rounds were skipped, because the server no longer answered."""

    @property
    def listing_tokens(self) -> int | None:
        """Tokens of all tools of the listing; ``None`` where they were not counted."""
        return sum(tool.tokens for tool in self.tools) if self.tools is not None else None


class Probe(Model):
    """One release tried by a bisection."""

    version: str
    verdict: Literal["good", "bad", "untestable"]
    reason: str
    """The figures behind the verdict, or the reason why the release could not be tested."""
    medians_s: dict[str, Number] = {}
    failed: dict[str, Number] = {}
    """The attempted operations, each with the share of attempts that failed."""
    findings: list[str] = []


class Bisection(Model):
    """The search for the release that changed something; its answer is the Run's ``first_bad`` or ``first_good``."""

    sdk: str
    target: str
    good: str
    bad: str
    """The other end of the search. Newer than ``good``, the search is for the release that broke something; older, for
    the release that fixed it."""
    neighbour: str | None
    """The nearest testable release on the other side of the change."""
    criterion: str
    """Description of the criterion that separates good releases from bad ones."""
    releases: Whole
    """Number of published releases from one end to the other, both included."""
    probes: list[Probe] = []
    """Every release that was run, in the order of the search."""


class Run(Model):
    """One experiment."""

    schema_: Literal["mcpace.run/1"] = Field(default=SCHEMA, alias="schema")
    kind: Kind
    started: str
    """Wall clock, RFC 3339."""
    machine: Machine
    mcpace: str
    """The release of mcpace that measured."""
    partial: bool = False
    """Whether the experiment was interrupted, so that part of the measurements is missing."""
    options: Facts = {}
    """The requested options: trials, hold, …"""
    versions: dict[str, dict[str, str]] = {}
    """For each subject's label, every package of its environment with its exact version."""
    dependencies_as_of: dict[str, str] = {}
    """For each subject whose dependencies are not those of its release's time: the day of the dependencies."""
    cases: list[Case] = []
    bisection: Bisection | None = None
    servers: ServerComparison | None = None
    """For a comparison of servers: facts that all servers have in common."""
    factors: list[Factor] = []
    """For experiments on a live target: the factors, in the order in which they were tested."""
    ladder: Ladder | None = None
    """For experiments on a live target: requests that each reach one layer further."""
    client_limits: list[ClientLimits] = []
    """For time limits of clients: each release, in the requested order."""
    comparison: Comparison | None = None
    """For a comparison or a gate, whose second side's cases are those of this run."""
    layers: LayersFacts | None = None
    """For a measurement of one server's layers: facts that all layers have in common."""
    gateway: GatewayFacts | None = None
    """For a measurement of a gateway: what it adds and changes."""
    replicas: ReplicasFacts | None = None
    """For a test of replicas: the steps of a dialogue under each way of balancing."""
    answers: list[Answer] = []
    """For a query, and for an explained folder of recordings: its tables."""
    unread: list[UnreadRecording] = []
    """For an explained folder of recordings: those that could not be read."""
    recording: RecordingFacts | None = None
    """For an explained recording: a summary of its exchanges."""
    check: CheckFacts | None = None
    """For a check of a host's configuration: facts that all its servers have in common."""
    limits: list[TokenLimit] = []
    """For a gate: limits on tokens."""
    processes: HostProcesses | None = None
    """For a list of the servers that hosts started: these servers."""
    first_bad: str | None = None
    """For a bisection: earliest release that behaves like ``bad``."""
    first_good: str | None = None
    """For a bisection whose ``good`` is the newer end: earliest release after ``bad`` that behaves like ``good``."""
    untestable: list[str] = []
    """For a bisection: releases next to the change that could not be tested. One of them may contain the change."""
    recordings: dict[str, str] = {}
    """For each ``subject × target``, the recording's file name, where one was kept."""

    def to_json(self) -> str:
        """The run as JSON text, by the schema's names."""
        return self.model_dump_json(by_alias=True, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        """Reads a run.

        Raises :class:`RunFormatError` for a text that isn't a run, or is a run of a newer schema.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise RunFormatError(_why(error)) from error

    @classmethod
    def load(cls, path: Path) -> Run:
        """Reads a run from a file of at most :data:`MOST_BYTES`. The limit also protects against endless devices and
        pipes."""
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)
        if len(read) > MOST_BYTES:
            raise RunFormatError(f"not a run: larger than {MOST_BYTES // 2**20} MiB, which is more than is read")
        return cls.from_json(read)

    @field_validator("schema_", mode="before")
    @classmethod
    def _known_schema(cls, value: object) -> object:
        if isinstance(value, str) and value.startswith("mcpace.run/") and value != SCHEMA:
            raise ValueError(f"its schema {value} is not {SCHEMA}, which this mcpace reads: update mcpace")
        return value


class RunFormatError(ValueError):
    """The input isn't a run that this release can read."""


def _why(error: ValidationError) -> str:
    if error.error_count() > MOST_ERRORS:  # listing them makes a dict of several hundred bytes for each
        return f"not a run: it has {error.error_count():,} members that no run has"
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top level"
    return f"not a run: at {place}: {first['msg']}"
