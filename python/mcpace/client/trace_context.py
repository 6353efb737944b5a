"""The active trace of OpenTelemetry, for the ``_meta`` of requests (SEP-414).

Design constraint: OpenTelemetry is used where the process has imported it, and never imported for its own sake.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

TRACEPARENT = "traceparent"


def add_active_trace(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns ``meta`` with the context of the active span, as the configured propagators write it.

    Returns ``meta`` itself if no span is active, or if it names a trace of its own.
    """
    trace = sys.modules["opentelemetry.trace"]
    if not trace.get_current_span().get_span_context().is_valid or (meta is not None and TRACEPARENT in meta):
        return meta
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier if meta is None else {**carrier, **meta}
