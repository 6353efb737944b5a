"""Messages of a worker, parsed by the driver.

Design constraint: a worker runs on another machine, so each line is checked before it is used. The members of a delta
equal those of ``SecondDelta`` in ``crates/load``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from mcpace.lab.load.engine_outcome import Connections, Count, Histogram, OperationOutcome, Outcome, Second

Clock = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Hello(BaseModel):
    """The first message."""

    kind: Literal["hello"]
    protocol: int
    version: str


class ClockReading(BaseModel):
    """The worker's clocks when it answered."""

    kind: Literal["clock"]
    number: int
    clock_ns: Clock
    """The clock of the engine, which has its own origin on each machine."""
    time_ns: Clock
    """Time of day."""


class Ready(BaseModel):
    """The worker has its part of the plan and reaches the target."""

    kind: Literal["ready"]


class Refused(BaseModel):
    """The worker can't take part."""

    kind: Literal["refused"]
    reason: str


class Delta(BaseModel):
    """Counts of one second."""

    started_ns: Count
    second: Second
    latency: Histogram
    """Latency of the good calls that ended in this second, the warm-up's too."""
    operations: list[OperationOutcome]
    """Calls of the measured part that ended in this second."""
    intended: Count
    """This and the following counts are totals since the start."""
    begun: Count
    late: Count
    unfinished: Count
    connections: Connections


class DeltaMessage(BaseModel):
    """A second has ended."""

    kind: Literal["delta"]
    delta: Delta


class OutcomeMessage(BaseModel):
    """The load has ended. The outcome has no seconds: the deltas have them."""

    kind: Literal["outcome"]
    outcome: Outcome


Message = Hello | ClockReading | Ready | Refused | DeltaMessage | OutcomeMessage
MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="kind")])
