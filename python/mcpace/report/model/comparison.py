"""The parts of a Run that a comparison adds: each figure's difference, and how certain the difference is.

Design constraint: data only. A ratio is always the second value over the first, so 2 means twice as much. Whether that
is better depends on the figure; ``verdict`` decides it.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole
from mcpace.report.model.drift import Drift, Level
from mcpace.report.model.load import Latencies
from mcpace.report.model.tokens import ComparedResult

Metric = Literal["time", "throughput", "mean", "p50", "p90", "p99", "errors", "stall", "cpu", "memory"]
Verdict = Literal["worse", "better", "same", "unclear"]
Method = Literal["rank-sum", "bootstrap-t", "wilson"]


INSTRUMENTS = frozenset({"generator-limited", "recorder-limited", "noisy-run"})
"""Codes of findings about the instrument or the machine, which are no fault of the measured subject."""


class Compared(Model):
    """One figure of one case, on both sides."""

    subject: str
    """Label of the second side's subject."""
    base_subject: str
    """Label of the first side's subject, for example another release."""
    target: str
    operation: str
    tool: str | None = None
    metric: Metric
    unit: Literal["s", "rps", "share", "bytes"]
    base: Number
    now: Number
    ratio: Number | None = None
    """Second over first; absent where the first is 0."""
    low: Number | None = None
    high: Number | None = None
    """95 % interval of the ratio; absent where there are too few values."""
    sees: Number | None = None
    """The smallest change that this comparison would detect in four of five repetitions, as a ratio above 1."""
    method: Method | None = None
    base_count: Whole = 0
    now_count: Whole = 0
    """Number of trials, rounds or batches of which the interval is computed."""
    verdict: Verdict
    """``same``: the interval is within the tolerance. ``unclear``: the interval contains 1 and exceeds the tolerance,
    or there is no interval."""
    breach: bool = False
    """Whether the whole interval is worse by more than the tolerance."""


class Newcomer(Model):
    """A cause that only one side shows."""

    subject: str
    target: str
    operation: str
    tool: str | None = None
    code: str
    severity: str
    cost_s: Number


class Missing(Model):
    """A case that only one side measured, or that fails on the second only."""

    subject: str
    target: str
    operation: str
    tool: str | None = None
    error: str | None = None
    """Error of the second side; absent where the second side did not measure the case."""


class Attempt(Model):
    """One measurement of both sides."""

    rows: list[Compared] = []
    new_findings: list[Newcomer] = []
    gone_findings: list[Newcomer] = []
    broken: list[Missing] = []
    """Cases that were measured on the first side and failed on the second."""


class SideFacts(Model):
    """Facts of one side that is a run of its own."""

    kind: str
    started: str
    mcpace: str
    cpu: str
    cores: Whole
    system: str
    architecture: str = ""
    memory_bytes: Whole | None = None
    """Absent in comparisons of older releases, as are the architecture and the Python version."""
    python: str = ""


class BaseCase(Model):
    """Figures of a case of the first side, for drawing it."""

    subject: str
    target: str
    operation: str
    tool: str | None = None
    trials_s: list[Number] = []
    latency_s: Latencies | None = None


class Comparison(Model):
    """The comparison of two sides."""

    base: SideFacts | None = None
    """The first side, where it is a run of its own. Absent where this run measured both sides in turns."""
    now: SideFacts | None = None
    """The second side, where the first is a run of its own. Absent in comparisons of older releases."""
    interleaved: bool = False
    warnings: list[str] = []
    """Codes of the circumstances that weaken the comparison: ``other-machine``, ``other-options``,
    ``not-interleaved``, …"""
    tolerance: Number
    """Tolerance of a gate: 0.1 accepts figures that are at most 10 % worse."""
    base_cases: list[BaseCase] = []
    only_base: list[Missing] = []
    only_now: list[Missing] = []
    attempts: list[Attempt] = []
    """Measurements of both sides. A gate measures again before it is red; the last attempt counts."""
    judged: bool = True
    """Whether a gate had anything to judge by: an interval, or something that broke."""
    red: bool = False
    """Whether a gate failed: in every attempt something went wrong at the same place (a breach, a failure, a new
    cause), even if the kind of fault differed between attempts; or no case of the second side could be measured."""
    inconclusive: bool = False
    """Whether a gate that is not red leaves a doubt: in every attempt one figure looks worse than the tolerance allows,
    and its interval is too wide to decide."""
    unconfirmed: str = ""
    """For a gate whose first attempt was red: the reason why the second attempt could not be made. Such a gate has not
    judged."""
    reasons: list[str] = []
    """Codes: ``slower``, ``broken``, ``new-finding``, ``drift``."""
    drift_limit: Level | None = None
    """For a gate: the lowest level of a change between the listings that fails it. Absent where none does."""
    drifts: list[Drift] = []
    """The comparisons of the listings that both sides have."""
    results: list[ComparedResult] = []
    """Tokens of the results that were counted on both sides."""
