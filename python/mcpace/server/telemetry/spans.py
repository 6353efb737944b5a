"""The spans and metrics of a server's requests, by OpenTelemetry's conventions for MCP (status: development).

A request is a span of kind SERVER, with children for the layers that it passed: ``mcpace.transport`` (from the end of
reading until the method is known), ``mcpace.dispatch`` (the rest), and ``mcpace.service`` (the author's function, whose
own spans are its children). The request's duration is also recorded in the histogram ``mcp.server.operation.duration``.

The parent is the client's context in ``_meta``, and a context in the HTTP headers is linked. Without one in ``_meta``,
the context in the headers is the parent.

Design constraint: uses OpenTelemetry's API, never its SDK. One thread records the requests afterwards, in batches, with
the original times; only a function that uses the current span has its spans made during the call. Session ids are never
recorded, because an id suffices to take a session over.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Mapping
from contextvars import Context as Variables
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, StatusCode

from mcpace import __version__, _core
from mcpace.server.errors import logger
from mcpace.server.telemetry.conventions import BUCKETS, DURATION
from mcpace.server.telemetry.deferred_spans import DeferredSpan, DeferredSpans

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mcpace.server.core.registry import Registry
    from mcpace.server.telemetry import SpanNames
    from mcpace.server.telemetry.prometheus import PrometheusDurations

SCOPE = "mcpace"
LONGEST_WORDS = 200
"""Limit of the message of a failed request, which may contain a peer's text."""
END_S = 2.0
"""How long the exit of the process waits for records that are still to be sent."""

Carrier = tuple[str | None, str | None, str | None]
KEYS = ("traceparent", "tracestate", "baggage")


class Facts(NamedTuple):
    """The facts of a request that are known before its function runs."""

    method: str
    target: str | None
    uri: str | None
    id: str
    revision: str
    meta: Carrier
    headers: Carrier | None
    """``None`` over stdio."""
    received_ns: int

    def attributes(self) -> dict[str, str]:
        """The attributes that spans and metrics share."""
        found = {"mcp.method.name": self.method, "mcp.protocol.version": self.revision}
        if self.method == "tools/call":
            found["gen_ai.operation.name"] = "execute_tool"
            if self.target is not None:
                found["gen_ai.tool.name"] = self.target
        elif self.method == "prompts/get" and self.target is not None:
            found["gen_ai.prompt.name"] = self.target
        if self.headers is None:
            found["network.transport"] = "pipe"
        else:
            found |= {"network.transport": "tcp", "network.protocol.name": "http"}
        return found


Failure = tuple[str, int, str]
Live = tuple[DeferredSpans, "Context"]
"""The spans around the functions of a request, and the context that the functions run in."""
Ended = tuple[Any, "Live | None", int, "tuple[int, int] | None", int, "Failure | None"]


def start_recorder(
    core: _core.Server,
    names: SpanNames,
    registry: Registry | None = None,
    durations: PrometheusDurations | None = None,
    *,
    is_traced: bool = True,
) -> None:
    """Records the server's requests with the providers that are set (``is_traced``), and for Prometheus."""
    tracers = None if is_traced else trace.NoOpTracerProvider()
    meters = None if is_traced else metrics.NoOpMeterProvider()
    teller = RequestRecorder(names, tracers, meters, registry=registry, durations=durations)
    if core.observe(teller.observations):
        teller.start()


class RequestRecorder:
    """Records one server's requests."""

    def __init__(
        self,
        names: SpanNames,
        tracers: trace.TracerProvider | None = None,
        meters: metrics.MeterProvider | None = None,
        *,
        registry: Registry | None = None,
        durations: PrometheusDurations | None = None,
    ) -> None:
        """Records with the given providers, or with those that are set. ``registry`` has the names of resources."""
        self.observations = _core.Observations(self.begin)
        self._names = names
        self._registry = registry
        self._tracer = trace.get_tracer(SCOPE, __version__, tracers)
        self._durations = metrics.get_meter(SCOPE, __version__, meters).create_histogram(
            DURATION,
            unit="s",
            description="From when a request had been read until its reply was ready",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._prometheus = durations
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="mcpace-telemetry", daemon=True)

    def start(self) -> None:
        """Starts the recording thread. The SDK registered its exit handler earlier, so it runs after this one."""
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Records the remaining requests, and stops."""
        self.observations.close()
        self._thread.join(END_S)
        self.flush()

    def flush(self) -> None:
        """Records all requests that have ended."""
        self._record(*self.observations.take_now())

    def begin(self, fact_values: tuple[Any, ...], started_ns: int, variables: Variables, live: Live | None) -> Live:
        """Called before the function of a request. Sets the service's span as the current span in ``variables``."""
        if live is None:
            facts = Facts(*fact_values)
            parent, links = _parent_context(facts)

            def make_spans() -> tuple[Span, Span]:
                span, within = self._span(facts, parent, links)
                return span, self._tracer.start_span("mcpace.service", within, start_time=started_ns)

            spans = DeferredSpans(make_spans, self._log_failure)
            live = spans, trace.set_span_in_context(DeferredSpan(spans), parent)
        variables.run(contexts.attach, live[1])
        return live

    def _run(self) -> None:
        while (taken := self.observations.take()) is not None:
            self._record(*taken)

    def _record(self, ended: list[Ended], lost: int) -> None:
        if lost:
            logger.warning("%d requests ended faster than OpenTelemetry could be told of them", lost)
        for one in ended:
            try:
                self._record_batch(*one)
            except Exception:
                self._log_failure()

    def _log_failure(self) -> None:
        """Logs the current exception, once: a failing provider must end neither the thread nor a call."""
        if not self._has_failed:
            self._has_failed = True
            logger.exception("a request could not be recorded with OpenTelemetry")

    def _record_batch(
        self,
        given: tuple[Any, ...],
        live: Live | None,
        entered_ns: int,
        service: tuple[int, int] | None,
        ended_ns: int,
        failure: Failure | None,
    ) -> None:
        facts = Facts(*given)
        if live is None:
            span, within = self._span(facts, *_parent_context(facts))
        else:
            span, service_span = live[0].get()
            within = trace.set_span_in_context(span)
            service_span.end(ended_ns if service is None else service[1])
        if span.is_recording():
            self._layer_span("mcpace.transport", within, facts.received_ns, entered_ns)
            self._layer_span("mcpace.dispatch", within, entered_ns, ended_ns)
        attributes = facts.attributes()
        if failure is not None:
            failed, words = _set_failure(failure)
            attributes |= failed
            span.set_attributes(failed)
            span.set_status(StatusCode.ERROR, words)
        span.end(ended_ns)
        seconds = (ended_ns - facts.received_ns) / 1e9
        self._durations.record(seconds, attributes, within)
        if self._prometheus is not None:
            self._prometheus.record(seconds, attributes, within)

    def _span(self, facts: Facts, parent: Context, links: list[Link]) -> tuple[Span, Context]:
        """The request's span, and the context that it is current in."""
        attributes = facts.attributes() | {"jsonrpc.request.id": facts.id}
        if facts.uri is not None:
            attributes["mcp.resource.uri"] = _without_query(facts.uri)
        if self._names == "dotted" and (name := self._binding_name(facts)) is not None:
            attributes["mcp.binding.name"] = name
        span = self._tracer.start_span(
            self._name(facts), parent, SpanKind.SERVER, attributes, links, start_time=facts.received_ns
        )
        return span, trace.set_span_in_context(span, parent)

    def _name(self, facts: Facts) -> str:
        if self._names == "dotted":
            return f"mcp.{facts.method.replace('/', '.')}"
        has_target = facts.target is not None and facts.method in ("tools/call", "prompts/get")
        return f"{facts.method} {facts.target}" if has_target else facts.method

    def _binding_name(self, facts: Facts) -> str | None:
        """The value of the older attribute ``mcp.binding.name``: the name of the tool, prompt or resource."""
        if facts.target is not None or facts.uri is None or self._registry is None:
            return facts.target
        found = self._registry.readable(facts.uri)
        return None if found is None else str(found[2].name)

    def _layer_span(self, name: str, within: Context, started_ns: int, ended_ns: int) -> None:
        self._tracer.start_span(name, within, start_time=started_ns).end(ended_ns)


def _parent_context(facts: Facts) -> tuple[Context, list[Link]]:
    """The client's context and the links of a request. The thread's own context is not used."""
    ours = _extract_context(facts.meta)
    around = _extract_context(facts.headers)
    if ours is None:
        return around or contexts.Context(), []
    link = None if around is None else trace.get_current_span(around).get_span_context()
    if link is None or not link.is_valid or link == trace.get_current_span(ours).get_span_context():
        return ours, []
    return ours, [Link(link)]


def _extract_context(carrier: Carrier | None) -> Context | None:
    """The context that the configured propagators find; ``None`` if they find none."""
    if carrier is None or not any(carrier):
        return None
    told: Mapping[str, str] = {key: value for key, value in zip(KEYS, carrier, strict=True) if value}
    return propagate.extract(told, contexts.Context())


def _set_failure(failure: Failure) -> tuple[dict[str, str], str | None]:
    kind, code, words = failure
    if kind == "tool":
        return {"error.type": "tool_error"}, None
    if kind == "cancelled":
        return {"error.type": "cancelled"}, None
    return {"error.type": str(code), "rpc.response.status_code": str(code)}, words[:LONGEST_WORDS]


def _without_query(uri: str) -> str:
    """A URL without its query, which may contain secrets. The access log omits it, too."""
    return re.split("[?#]", uri, maxsplit=1)[0]
