"""The parts of a Run that a comparison of servers adds: the limits on each server, the figures of each round, the
floor.

Design constraint: data only. An unknown value is absent, never zero.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Facts, Model, Number, Whole
from mcpace.report.model.load import Latencies


class ServerRound(Model):
    """One server under load, once; the others stood still meanwhile."""

    throughput_rps: Number
    errors: Whole
    p50_s: Number | None = None
    p99_s: Number | None = None
    cpu_s_per_call: Number | None = None
    """Processor time of all its processes."""
    rss_bytes: Whole | None = None
    """Largest memory of all its processes together."""
    engine_busy: Number
    saturated: bool


class RateRatio(Model):
    """This server's throughput over the first one's, round by round."""

    against: str
    """Label of the first subject."""
    ratio: Number
    """Geometric mean of the rounds' ratios."""
    low: Number | None = None
    high: Number | None = None
    """95 % interval: Student's t over the logarithms of the rounds' ratios. Absent with fewer than two rounds."""
    rounds: Whole


class ServerFacts(Model):
    """How one server ran."""

    sdk_version: str = ""
    """As its program found it at run time."""
    revision: str = ""
    """That was spoken with it; empty where it came to nothing."""
    workers: Whole = 1
    """Processes that serve, as the server reports them."""
    processes: Whole | None = None
    """Processes that were seen."""
    notes: list[str] = []
    checked: list[str] = []
    """Tools whose answers were as they must be, each called once before the load."""
    rounds: list[ServerRound] = []
    cpu_s_per_call: Number | None = None
    rss_idle_bytes: Whole | None = None
    """Before the first load."""
    ratio: RateRatio | None = None


class ServerCap(Model):
    """What each server was held to."""

    by: Literal["cgroup", "affinity"]
    """``cgroup``: a share of processor time, a limit of memory. ``affinity``: fewer processors, any memory."""
    cpus: Number
    memory_bytes: Whole | None = None
    """The limit that was asked for; in force with ``cgroup`` only."""
    memory_limited: bool
    cores: list[Whole]
    """Processors that servers could use."""
    load_cores: list[Whole]
    """Processors that only the load and what stands behind the servers could use; none where they shared."""


class Floor(Model):
    """The same load on a server that does nothing (hyper, one thread a core), over the same path."""

    throughput_rps: Number
    latency_s: Latencies | None = None
    cpu_s_per_call: Number | None = None
    engine_busy: Number
    saturated: bool
    ceiling_rps: Number | None = None
    """What the load engine could do at most with this load on this machine: its rate here, had it always been busy."""
    error: str | None = None
    """Why there is none."""


class ServerComparison(Model):
    """What all servers had in common."""

    workload: str
    operations: Facts
    """Each tool with its arguments, weighted alike."""
    model: Facts
    """``{"kind": "closed", "vus": 50}`` or ``{"kind": "open", "rate": 1000, …}``."""
    revision: str
    session: str
    state: str
    rounds: Whole
    round_s: Number
    """Measured seconds of each round, after ``round_warm_up_s``."""
    round_warm_up_s: Number
    cap: ServerCap
    floor: Floor | None = None
    behind: dict[str, str] = {}
    """What stood behind the servers, with versions: ``redis-server``, the product API."""
