"""The part of a Run that holds the effective time limits of clients: when a client gives up, by layer.

Design constraint: data only.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number

LimitLayer = Literal["connect", "head", "idle", "tool", "progress", "body"]


class LimitFacts(Model):
    """One layer of one client."""

    layer: LimitLayer
    limit_s: Number | None = None
    """Time after which the client gave up; ``None`` where it did not within ``tried_s``."""
    answered_s: Number | None = None
    """Longest time after which an answer was still taken. The limit lies between it and ``limit_s``."""
    tried_s: Number
    """Longest time that was tried."""
    message: str = ""
    """The client's words when it gave up."""
    unknown: str = ""
    """Reason why there is no result; ``limit_s`` says nothing then."""


class ClientLimits(Model):
    """The limits of one release."""

    subject: str
    """Label of the release: ``python@1.12.1``."""
    layers: list[LimitFacts] = []
    error: str = ""
    """Reason why the release could not be run."""
