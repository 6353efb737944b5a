"""What OpenTelemetry is told of a server's requests, by its conventions for MCP (status: development).

A request is a span of kind SERVER, with children for the layers that it passed: ``mcpace.transport`` (from when it had
been read until it was known what is asked), ``mcpace.dispatch`` (all after that), and ``mcpace.service``, the author's
function, whose own spans are children of that one. Its duration also goes into the histogram
``mcp.server.operation.duration``.

The client's context comes out of ``_meta``; one in the HTTP headers is linked then, and is the parent where ``_meta``
has none.

Design constraint: the API alone, no SDK. Only the spans that a function is part of begin before the call; everything
else is told by one thread, afterwards and in batches, with the times as they were. Session ids are told to nobody:
whoever has one can take the session over.
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

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mcpace.server.core.registry import Registry
    from mcpace.server.telemetry import SpanNames

SCOPE = "mcpace"
DURATION = "mcp.server.operation.duration"
# As the conventions advise (docs/gen-ai/mcp.md), and finer below their first: calls here take microseconds.
BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
LONGEST_WORDS = 200
"""Of what a request failed of: a sentence, which may have a peer's text in it."""
END_S = 2.0
"""How long the end of the process waits for what is still to be told."""

Carrier = tuple[str | None, str | None, str | None]
KEYS = ("traceparent", "tracestate", "baggage")


class Facts(NamedTuple):
    """What was known of a request before its function ran."""

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
        """Those that spans and metrics share."""
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
Live = tuple[Span, Span, "Context"]
"""A request's span, its service's, and the context that its functions run in."""
Ended = tuple[Any, "Live | None", int, "tuple[int, int] | None", int, "Failure | None"]


def tell(core: _core.Server, names: SpanNames, registry: Registry | None = None) -> None:
    """Tells the providers that are set of the server's requests."""
    teller = Teller(names, registry=registry)
    if core.observe(teller.observations):
        teller.start()


class Teller:
    """One server's requests, on their way to the providers."""

    def __init__(
        self,
        names: SpanNames,
        tracers: trace.TracerProvider | None = None,
        meters: metrics.MeterProvider | None = None,
        *,
        registry: Registry | None = None,
    ) -> None:
        """Without providers of its own, for those that are set. ``registry`` knows what resources are called."""
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
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="mcpace-telemetry", daemon=True)

    def start(self) -> None:
        """Begins to tell. The SDK's own end was registered earlier, so that it comes after ours."""
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Tells what is left, and ends."""
        self.observations.close()
        self._thread.join(END_S)
        self.flush()

    def flush(self) -> None:
        """Tells all that has ended."""
        self._tell(*self.observations.take_now())

    def begin(self, facts: tuple[Any, ...], started_ns: int, variables: Variables, live: Live | None) -> Live:
        """A request's function is about to be called in these variables: its spans are to be children of ours."""
        if live is None:
            span, within = self._span(Facts(*facts))
            service = self._tracer.start_span("mcpace.service", within, start_time=started_ns)
            live = span, service, trace.set_span_in_context(service, within)
        variables.run(contexts.attach, live[2])
        return live

    def _run(self) -> None:
        while (taken := self.observations.take()) is not None:
            self._tell(*taken)

    def _tell(self, ended: list[Ended], lost: int) -> None:
        if lost:
            logger.warning("%d requests ended faster than OpenTelemetry could be told of them", lost)
        for one in ended:
            try:
                self._told(*one)
            except Exception:
                # A provider's fault ends no thread, and least of all a call. Said once, not with each.
                if not self._has_failed:
                    self._has_failed = True
                    logger.exception("OpenTelemetry could not be told of a request")

    def _told(
        self,
        given: tuple[Any, ...],
        live: Live | None,
        entered_ns: int,
        service: tuple[int, int] | None,
        ended_ns: int,
        failure: Failure | None,
    ) -> None:
        facts = Facts(*given)
        span, within = self._span(facts) if live is None else (live[0], trace.set_span_in_context(live[0]))
        if live is not None:
            live[1].end(ended_ns if service is None else service[1])
        if span.is_recording():
            self._layer("mcpace.transport", within, facts.received_ns, entered_ns)
            self._layer("mcpace.dispatch", within, entered_ns, ended_ns)
        attributes = facts.attributes()
        if failure is not None:
            failed, words = _failed(failure)
            attributes |= failed
            span.set_attributes(failed)
            span.set_status(StatusCode.ERROR, words)
        span.end(ended_ns)
        self._durations.record((ended_ns - facts.received_ns) / 1e9, attributes, within)

    def _span(self, facts: Facts) -> tuple[Span, Context]:
        """The request's span, and the context that it is current in."""
        parent, links = _parent(facts)
        attributes = facts.attributes() | {"jsonrpc.request.id": facts.id}
        if facts.uri is not None:
            attributes["mcp.resource.uri"] = _without_query(facts.uri)
        if self._names == "dotted" and (name := self._binding(facts)) is not None:
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

    def _binding(self, facts: Facts) -> str | None:
        """What older packages call a binding: the tool, the prompt, or the resource by its name."""
        if facts.target is not None or facts.uri is None or self._registry is None:
            return facts.target
        found = self._registry.readable(facts.uri)
        return None if found is None else str(found[2].name)

    def _layer(self, name: str, within: Context, started_ns: int, ended_ns: int) -> None:
        self._tracer.start_span(name, within, start_time=started_ns).end(ended_ns)


def _parent(facts: Facts) -> tuple[Context, list[Link]]:
    """The client's context, and what else the request came from. Nothing of the thread's own."""
    ours = _extracted(facts.meta)
    around = _extracted(facts.headers)
    if ours is None:
        return around or contexts.Context(), []
    link = None if around is None else trace.get_current_span(around).get_span_context()
    if link is None or not link.is_valid or link == trace.get_current_span(ours).get_span_context():
        return ours, []
    return ours, [Link(link)]


def _extracted(carrier: Carrier | None) -> Context | None:
    """By the propagators that are configured; ``None`` where there is nothing in it."""
    told: Mapping[str, str] = {key: value for key, value in zip(KEYS, carrier or (), strict=False) if value}
    return propagate.extract(told, contexts.Context()) if told else None


def _failed(failure: Failure) -> tuple[dict[str, str], str | None]:
    kind, code, words = failure
    if kind == "tool":
        return {"error.type": "tool_error"}, None
    if kind == "cancelled":
        return {"error.type": "cancelled"}, None
    return {"error.type": str(code), "rpc.response.status_code": str(code)}, words[:LONGEST_WORDS]


def _without_query(uri: str) -> str:
    """A query may hold secrets; the access log leaves it out, too."""
    return re.split("[?#]", uri, maxsplit=1)[0]
