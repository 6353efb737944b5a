"""Spans that are made when somebody first uses them.

The two spans around a function cost about 80 µs with OpenTelemetry's SDK. A function that makes no spans of its own and
does not ask for the current span never uses them, so they are made after its call, with the original times.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span, SpanContext, Status, StatusCode
from opentelemetry.util.types import Attributes, AttributeValue


class DeferredSpans:
    """The span of a request and the span of its service."""

    def __init__(self, make: Callable[[], tuple[Span, Span]], log_failure: Callable[[], None]) -> None:
        """``make`` returns both spans. ``log_failure`` logs the exception of ``make`` that is being handled."""
        self._make = make
        self._log_failure = log_failure
        self._made: tuple[Span, Span] | None = None
        self._lock = threading.Lock()

    def get(self) -> tuple[Span, Span]:
        """Returns both spans, and makes them at the first call. From any thread."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    # Neither a span processor nor a log handler may find the current span while it is being made.
                    self._made = contextvars.Context().run(self._make_spans)
        return self._made

    def _make_spans(self) -> tuple[Span, Span]:
        try:
            return self._make()
        except Exception:
            self._log_failure()
            return INVALID_SPAN, INVALID_SPAN


class DeferredSpan(Span):
    """The current span of a function: it passes everything on to the service's span. It is no ``ReadableSpan``, but has
    the members of one where the service's span has.
    """

    def __init__(self, spans: DeferredSpans) -> None:
        self._spans = spans

    @property
    def _service(self) -> Span:
        return self._spans.get()[1]

    def __getattr__(self, name: str) -> Any:
        """Passes on what spans of the SDK have beyond the API."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._service, name)

    def end(self, end_time: int | None = None) -> None:
        self._service.end(end_time)

    def get_span_context(self) -> SpanContext:
        return self._service.get_span_context()

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        self._service.set_attributes(attributes)

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        self._service.set_attribute(key, value)

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        self._service.add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        self._service.add_link(context, attributes)

    def update_name(self, name: str) -> None:
        self._service.update_name(name)

    def is_recording(self) -> bool:
        return self._service.is_recording()

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self._service.set_status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        self._service.record_exception(exception, attributes, timestamp, escaped)
