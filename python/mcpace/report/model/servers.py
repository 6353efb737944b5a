"""The parts of a Run that a comparison of servers adds: the limits on each server, the figures of each round, the
floor.

Design constraint: data only. An unknown value is absent, never zero.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Facts, Model, Number, Whole
from mcpace.report.model.load import Latencies


class ServerRound(Model):
    """One round of load on one server, while the other servers are idle."""

    throughput_rps: Number
    errors: Whole
    p50_s: Number | None = None
    p99_s: Number | None = None
    cpu_s_per_call: Number | None = None
    """Processor time of all processes of the server, per call."""
    rss_bytes: Whole | None = None
    """Largest total memory of all processes of the server."""
    engine_busy: Number
    saturated: bool


class RateRatio(Model):
    """Throughput of a server divided by that of the first server, round by round."""

    against: str
    """Label of the first subject."""
    ratio: Number
    """Geometric mean of the rounds' ratios."""
    low: Number | None = None
    high: Number | None = None
    """95 % interval: Student's t over the logarithms of the rounds' ratios. Absent with fewer than two rounds."""
    rounds: Whole


class ServerFacts(Model):
    """Facts of one server."""

    sdk_version: str = ""
    """Version of the SDK that the server's program reported at run time."""
    revision: str = ""
    """Negotiated revision of the protocol; empty where the negotiation failed."""
    workers: Whole = 1
    """Number of serving processes, as the server reports it."""
    processes: Whole | None = None
    """Number of observed processes."""
    notes: list[str] = []
    checked: list[str] = []
    """Tools that were called once before the load and gave the expected answer."""
    rounds: list[ServerRound] = []
    cpu_s_per_call: Number | None = None
    rss_idle_bytes: Whole | None = None
    """Memory before the first load."""
    ratio: RateRatio | None = None


class ServerCap(Model):
    """Limit of processors and memory for each server."""

    by: Literal["cgroup", "affinity"]
    """``cgroup``: a share of processor time, a limit of memory. ``affinity``: fewer processors, any memory."""
    cpus: Number
    memory_bytes: Whole | None = None
    """The requested limit, which only ``cgroup`` enforces."""
    memory_limited: bool
    cores: list[Whole]
    """Processors that servers could use."""
    load_cores: list[Whole]
    """Processors reserved for the load and for the programs behind the servers; empty where they shared processors."""


class Floor(Model):
    """The load on a server that does nothing (hyper, one thread a core), over the same path."""

    throughput_rps: Number
    latency_s: Latencies | None = None
    cpu_s_per_call: Number | None = None
    engine_busy: Number
    saturated: bool
    ceiling_rps: Number | None = None
    """Estimate of the highest rate of the load engine with this load on this machine: its rate divided by the share of
    time in which it was busy."""
    error: str | None = None
    """Reason why the floor was not measured."""


class ServerComparison(Model):
    """Facts that all servers have in common."""

    workload: str
    operations: Facts
    """Each tool with its arguments. All tools have equal weight."""
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
    """Programs behind the servers, with versions: ``redis-server``, the product API."""
