"""The part of a Run that a measurement of a gateway adds: its added time, its throughput, and what it changes.

Design constraint: data only. ``direct`` is the path from the client to the server, ``through`` the path by the gateway.
Names and values of headers come from peers; secrets among them are redacted when they are recorded.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole
from mcpace.report.model.load import Latencies

Percentile = Literal["p50", "p90", "p99"]
ChangeCode = Literal[
    "revision",
    "transport",
    "server",
    "session-added",
    "session-removed",
    "sessions",
    "reply-form",
    "reply-header",
    "request-header",
    "connections",
    "processes",
    "requests",
    "stream-held-back",
    "stream-lost",
    "stream-failed",
]
"""Kind of a change; the words for each are in :mod:`mcpace.report.words.gateway`."""


class AddedQuantile(Model):
    """A percentile of one operation's time on both paths."""

    operation: Literal["connect", "list", "call"]
    percentile: Percentile
    direct_s: Number
    through_s: Number
    low_s: Number | None = None
    high_s: Number | None = None
    """95 % interval of through less direct: a bootstrap over the rounds. Absent with fewer than five rounds."""
    direct_count: Whole
    through_count: Whole
    """Number of repetitions."""


class AddedPart(Model):
    """A part of a call's ledger on both paths: means over the rounds."""

    part: str
    direct_s: Number
    through_s: Number
    low_s: Number | None = None
    high_s: Number | None = None
    """95 % interval of through less direct: Student's t over the rounds. Absent with fewer than two rounds."""


class GatewayTime(Model):
    """Time of calls through the gateway, divided by a recorder between the gateway and the server: means."""

    calls: Whole
    call_s: Number
    server_s: Number
    """From the gateway's first request to the server to the end of the last reply, without the pauses between."""
    requests: Number
    """Requests of the gateway a call."""


class GatewayLoad(Model):
    """Load on both paths in turns."""

    vus: Whole
    turns: Whole
    turn_s: Number
    """Measured seconds of each turn, after its warm-up."""
    direct_rps: Number
    through_rps: Number
    ratio: Number | None = None
    low: Number | None = None
    high: Number | None = None
    """Through over direct, and its 95 % interval: Student's t over the logarithms of the turns' ratios."""
    direct_s: Latencies | None = None
    through_s: Latencies | None = None
    direct_errors: Whole = 0
    through_errors: Whole = 0
    saturated: bool = False
    """Whether the load generator was the limit in any turn."""
    error: str = ""
    """Reason why the load was not measured, or not to its end."""


class GatewayChange(Model):
    """Something that differs between the two paths. An absent value is empty."""

    code: ChangeCode
    name: str = ""
    """Name of the header or of the method."""
    direct: str = ""
    through: str = ""


class GatewayFacts(Model):
    """The gateway between a client and a server."""

    quantiles: list[AddedQuantile] = []
    parts: list[AddedPart] = []
    """The parts of the ledger of a call, in the order in which they occur."""
    inside: GatewayTime | None = None
    load: GatewayLoad | None = None
    changes: list[GatewayChange] = []
    not_observed: str = ""
    """Reason why the traffic between the gateway and the server was not observed."""
    stream_not_tried: str = ""
    """Reason why no stream was tried."""
