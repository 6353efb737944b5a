"""The parts of a Run that a comparison adds: each figure's difference, and how certain the difference is.

Design constraint: data only. A ratio is always the second value over the first, so 2 means twice as much. Whether that
is better depends on the figure; ``verdict`` decides it.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole
from mcpace.report.model.load import Latencies

Metric = Literal["time", "throughput", "mean", "p50", "p90", "p99", "errors", "stall", "cpu", "memory"]
Verdict = Literal["worse", "better", "same", "unclear"]
Method = Literal["rank-sum", "bootstrap-t", "wilson"]


INSTRUMENTS = frozenset({"generator-limited", "recorder-limited", "noisy-run"})
"""Codes of findings that tell of the instrument or the machine: no fault of what was measured."""


class Compared(Model):
    """One figure of one case, on both sides."""

    subject: str
    """Label of the second side's subject."""
    base_subject: str
    """Label of the first side's: another release, say."""
    target: str
    operation: str
    tool: str | None = None
    metric: Metric
    unit: Literal["s", "rps", "share", "bytes"]
    base: Number
    now: Number
    ratio: Number | None = None
    """Second over first; absent where the first is nothing."""
    low: Number | None = None
    high: Number | None = None
    """95 % interval of the ratio; absent where there is too little to say."""
    sees: Number | None = None
    """The smallest change that this comparison would see in four of five repetitions, as a ratio above 1."""
    method: Method | None = None
    base_count: Whole = 0
    now_count: Whole = 0
    """Trials, rounds or batches that the interval is over."""
    verdict: Verdict
    """``same``: the interval is within the tolerance. ``unclear``: it holds 1 and reaches beyond, or there is none."""
    breach: bool = False
    """Worse by more than the tolerance, the whole interval."""


class Newcomer(Model):
    """A cause that only the second side shows (or only the first)."""

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
    """What the second side said; absent where it was not asked for."""


class Attempt(Model):
    """Both sides, once."""

    rows: list[Compared] = []
    new_findings: list[Newcomer] = []
    gone_findings: list[Newcomer] = []
    broken: list[Missing] = []
    """Measured on the first side, failed on the second."""


class SideFacts(Model):
    """One side, where it is a run of its own."""

    kind: str
    started: str
    mcpace: str
    cpu: str
    cores: Whole
    system: str
    architecture: str = ""
    memory_bytes: Whole | None = None
    """Absent in comparisons of before it was told, as the architecture and the Python."""
    python: str = ""


class BaseCase(Model):
    """What a picture of the first side needs."""

    subject: str
    target: str
    operation: str
    tool: str | None = None
    trials_s: list[Number] = []
    latency_s: Latencies | None = None


class Comparison(Model):
    """Two sides and what came of holding one against the other."""

    base: SideFacts | None = None
    """Absent where both sides were measured here, in turns."""
    now: SideFacts | None = None
    """The second side, where the first is a run of its own. Absent in comparisons of before it was told."""
    interleaved: bool = False
    warnings: list[str] = []
    """Codes of what makes it weaker than it looks: ``other-machine``, ``other-options``, ``not-interleaved``, …"""
    tolerance: Number
    """A gate's: 0.1 lets pass what is at most 10 % worse."""
    base_cases: list[BaseCase] = []
    only_base: list[Missing] = []
    only_now: list[Missing] = []
    attempts: list[Attempt] = []
    """A gate measures again before it is red; the last one counts."""
    judged: bool = True
    """Of a gate: whether there was anything to judge by, an interval or something that broke."""
    red: bool = False
    """Of a gate: in every attempt something went wrong at the same place (a breach, a failure, a new cause), perhaps in
    another way each time; or the whole side is gone."""
    inconclusive: bool = False
    """Whether a gate that is not red leaves a doubt: in every attempt one figure looks worse than the tolerance allows,
    and its interval is too wide to decide."""
    unconfirmed: str = ""
    """Of a gate whose first attempt was red: why the second could not be made. Then it has judged nothing."""
    reasons: list[str] = []
    """Codes: ``slower``, ``broken``, ``new-finding``."""
