"""What the page is handed of loads, and of servers under one.

Design constraint: as in :mod:`mcpace.report.page_model`, which puts the page together.
"""

from __future__ import annotations

from mcpace.report.model import Model
from mcpace.report.page_model_setup import Fact


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
