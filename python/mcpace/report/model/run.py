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

from mcpace.report.model.base import Facts, Model, Number, Whole
from mcpace.report.model.comparison import Comparison
from mcpace.report.model.factors import Factor
from mcpace.report.model.layers import LayerFacts, LayersFacts
from mcpace.report.model.load import LoadCase
from mcpace.report.model.recording import RecordingFacts
from mcpace.report.model.servers import ServerComparison, ServerFacts

SCHEMA: Literal["mcpace.run/1"] = "mcpace.run/1"
MOST_BYTES = 64 * 2**20
"""Most bytes of a run's file: a day's load, second by second, has a third of it."""
MOST_ERRORS = 1_000
"""That are looked at, to name the first."""

Kind = Literal[
    "clients", "measure", "bisect", "demo", "load", "servers", "layers", "compare", "gate", "explain", "recording"
]
Operation = Literal["provider", "connect", "list", "call", "disconnect"]


class Machine(Model):
    """Where it ran, as far as it matters for comparing runs."""

    system: str
    """Kernel name and release."""
    architecture: str
    cpu: str
    """Model name of the processor."""
    cores: Whole
    """Logical processors this process may use."""
    memory_bytes: Whole
    python: str


class Subject(Model):
    """What was measured: a release of an SDK, or our own instrumented client (``sdk="mcpace-client"``)."""

    sdk: str
    version: str | None = None
    mode: str | None = None

    def label(self) -> str:
        """As users type it: ``python@1.12.1``, ``python@2.3.0:legacy``."""
        text = self.sdk if self.version is None else f"{self.sdk}@{self.version}"
        return text if self.mode is None else f"{text}:{self.mode}"


class Summary(Model):
    """Trials in one line. The first trial is cold (imports, discovery, registration) and stands apart: the other four
    figures are over the trials after it, or over it alone where there is no other."""

    first_s: Number
    median_s: Number
    mean_s: Number
    min_s: Number
    max_s: Number

    @classmethod
    def of(cls, trials_s: list[float]) -> Summary:
        """Summary of at least one trial."""
        warm = trials_s[1:] or trials_s
        return cls(
            first_s=trials_s[0],
            median_s=statistics.median(warm),
            mean_s=statistics.fmean(warm),
            min_s=min(warm),
            max_s=max(warm),
        )


class Ledger(Model):
    """Where the time of the operation went: mean over the warm trials, seconds. The parts add up to the mean."""

    client_send: Number = Field(alias="client.send")
    """Client working before a request left."""
    connect: Number
    """TCP and TLS of new connections."""
    request: Number
    """A request's first byte to its last."""
    server: Number
    """Request's last byte at the server to the first byte of the message with the result."""
    response: Number
    """That message's first byte to its last."""
    client_receive: Number = Field(alias="client.receive")
    """Result complete at the client to the operation's return (or the client's next request)."""
    unaccounted: Number
    """The recorder's own passing time and whatever could not be attributed."""
    server_split: ServerSplit | None = None
    """``server`` by layer, where the server tells."""

    def total(self) -> float:
        """Sum of the parts."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """The parts by their dotted names, in the order of a call."""
        return {
            "client.send": self.client_send,
            "connect": self.connect,
            "request": self.request,
            "server": self.server,
            "response": self.response,
            "client.receive": self.client_receive,
            "unaccounted": self.unaccounted,
        }


class ServerSplit(Model):
    """``server`` by the server's own account of its layers: mean over the warm trials, seconds. With ``rest`` they add
    up to ``server``."""

    transport: Number
    """Less than was told where reading and writing took part of it: those are in ``request`` and ``response``."""
    dispatch: Number
    service: Number
    rest: Number | None = None
    """The network, the kernel, and what the server did not tell. Absent in runs of before it was told apart."""
    told: Whole | None = None
    """Calls that the server gave an account of."""
    of_calls: Whole | None = None
    """Warm calls. Those without an account, and those whose account is not believed, are in ``rest``."""
    doubted: Whole = 0
    """Accounts that can't be true."""
    doubt: Literal["malformed", "longer-than-exchange"] | None = None
    """Why, for the first of them."""
    doubted_s: Number | None = None
    """What the doubted accounts came to, mean."""


class Evidence(Model):
    """One event of the recording that proves a finding."""

    at_s: Number
    """Seconds since the call's start."""
    role: str
    """What the event is in the finding's argument, e.g. ``first-request``, ``repeated-request``."""
    event: Whole
    """Index of the event in the recording."""


class Alternative(Model):
    """Another cause that would look the same in the recording."""

    code: str
    decided_by: str
    """Code of the experiment that would decide between the two."""


class Finding(Model):
    """A named cause. ``code`` is one of the closed list in docs/findings.md."""

    code: str
    severity: Literal["high", "medium", "low"]
    confidence: str
    """``high``, ``medium`` or ``low``."""
    confidence_reason: str = ""
    """Code of why it is no more and no less sure."""
    cost_s: Number
    """Seconds a call, mean over the affected warm calls of this case."""
    cost_requests: Number = 0.0
    """Extra requests a call."""
    cost_bytes: Number = 0.0
    """Extra bytes a call."""
    calls: Whole
    """Trials of this case in which it was seen."""
    of_calls: Whole
    """Trials of this case."""
    context: Facts = {}
    """The cause's own facts, from the first affected call."""
    evidence: list[Evidence] = []
    trial: Whole | None = None
    """Which trial of the case the evidence is of, from 0."""
    first_only: bool = False
    """Seen in the first repetition of sessions only, and costed by those."""
    disproof: str = ""
    """Code of the experiment that would disprove it."""
    alternatives: list[Alternative] = []
    """Other causes that would look the same."""
    total_s: Number = 0.0
    """Seconds in all, for a cause that was seen outside the calls; ``calls`` is 0 then."""
    total_requests: Number = 0.0
    """Extra requests in all, likewise."""
    total_bytes: Number = 0.0
    """Extra bytes in all, likewise."""
    advice: str = ""
    """One sentence of what to do."""


class Change(Model):
    """This case against the same target and operation of the first subject."""

    against: str
    """Label of the first subject."""
    ratio: Number
    """A typical trial of this over a typical trial of that (Hodges–Lehmann)."""
    low: Number
    high: Number
    """95 % interval of the ratio, distribution-free (rank-sum bounds); over the warm trials."""
    difference_s: Number
    """This median less that median."""


class Phase(Model):
    """A stretch of an exchange in a waterfall, milliseconds since the call's start."""

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


class Waterfall(Model):
    """One call's exchanges on one time axis."""

    trial: Whole
    """Which trial of the case, from 0."""
    total_ms: Number
    exchanges: list[WaterfallExchange] = []


class Case(LoadCase):
    """One subject × target × operation."""

    subject: Subject
    target: str
    operation: Operation
    tool: str | None = None
    trials_s: list[Number] = []
    """Every trial that returned, in order, seconds. Where a session repeats the operation, the trial is the median of
    the session's later repetitions."""
    first_s: list[Number] = []
    """The first repetition of each of these sessions. Empty where sessions made the operation once, and in runs of
    releases that did not tell the two apart."""
    starts_process: bool = False
    """Whether connecting started the server's process, so that its time is the server's start-up."""
    listing_bytes: Whole | None = None
    """For the operation ``list``: bytes of the tools' descriptions, as JSON."""
    listing_tools: Whole | None = None
    """For the operation ``list``: number of the tools."""
    summary: Summary | None = None
    ledger_s: Ledger | None = None
    change: Change | None = None
    findings: list[Finding] = []
    waterfall: Waterfall | None = None
    """The slowest warm trial."""
    server: ServerFacts | None = None
    """Of a comparison of servers: how this one ran; absent from the others' JSON."""
    median_s: Number | None = None
    """Of a layer: over its batches; absent from the others' JSON, as the two that follow."""
    over_direct_s: Number | None = None
    """Of a layer: its median less the direct call's."""
    layer: LayerFacts | None = None
    failures: list[str] = []
    """What failed trials said, in order."""
    unsupported: str | None = None
    """Why this release can't do it, where it can't; then there are no trials and no error."""
    error: str | None = None
    """Why there is no (complete) measurement."""
    given_up: bool = False
    """Of connecting: further rounds were not tried, since nothing came any more."""


class Probe(Model):
    """One release tried by a bisection."""

    version: str
    verdict: Literal["good", "bad", "untestable"]
    reason: str
    """The figures behind the verdict, or why it could not be tested."""
    medians_s: dict[str, Number] = {}
    failed: dict[str, Number] = {}
    """Operations that were tried, each with the share of attempts that failed."""
    findings: list[str] = []


class Bisection(Model):
    """The search for the release that changed something; its answer is the Run's ``first_bad`` or ``first_good``."""

    sdk: str
    target: str
    good: str
    bad: str
    """Newer than ``good``: when did it break? Older: when was it mended?"""
    neighbour: str | None
    """The nearest testable release on the other side of the change."""
    criterion: str
    """What told good from bad."""
    releases: Whole
    """Published releases from one end to the other, both included."""
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
    """Interrupted: what is here was measured, the rest is missing."""
    options: Facts = {}
    """What was asked for: trials, hold, …"""
    versions: dict[str, dict[str, str]] = {}
    """For each subject's label, every package of its environment with its exact version."""
    dependencies_as_of: dict[str, str] = {}
    """Of subjects whose dependencies are not of their release's time: the day that they are of."""
    cases: list[Case] = []
    bisection: Bisection | None = None
    servers: ServerComparison | None = None
    """Of a comparison of servers: what all of them had in common."""
    factors: list[Factor] = []
    """Of experiments on a live target, in the order in which they were made."""
    comparison: Comparison | None = None
    """Of a comparison or a gate: the second side's cases are this run's."""
    layers: LayersFacts | None = None
    """Of one server's layers: what all of them had in common."""
    recording: RecordingFacts | None = None
    """Of a recording that was explained."""
    first_bad: str | None = None
    """Of a bisection: earliest release that behaves like ``bad``."""
    first_good: str | None = None
    """Of a bisection whose ``good`` is the newer end: earliest release after ``bad`` that behaves like it."""
    untestable: list[str] = []
    """Of a bisection: releases beside the change that could not be tested; the change may be in one of them."""
    recordings: dict[str, str] = {}
    """For each ``subject × target``, the recording's file name, where one was kept."""

    def to_json(self) -> str:
        """The run as JSON text, by the schema's names."""
        return self.model_dump_json(by_alias=True, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        """Reads a run.

        Raises :class:`RunFormatError` where it is none, or one of a newer schema.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise RunFormatError(_why(error)) from error

    @classmethod
    def load(cls, path: Path) -> Run:
        """Reads a run from a file of :data:`MOST_BYTES` at most; any path may be a device or a pipe without end."""
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
    """The input is no run that this release can read."""


def _why(error: ValidationError) -> str:
    if error.error_count() > MOST_ERRORS:  # each would become a dict of several hundred bytes
        return f"not a run: it has {error.error_count():,} members that no run has"
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top level"
    return f"not a run: at {place}: {first['msg']}"
