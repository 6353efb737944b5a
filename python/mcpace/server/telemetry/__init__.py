"""Traces and metrics by OpenTelemetry: whether they are recorded, and how spans are named.

A server is traced if a tracer provider or a meter provider is set before it is served, as the OpenTelemetry SDK's
set-up or ``opentelemetry-instrument`` do. No other configuration is needed.

Design constraint: without a provider, OpenTelemetry is not imported and a call costs one branch. ``spans.py`` makes the
spans, and is loaded only if there is a provider.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.core.registry import Registry
    from mcpace.server.running.addresses import Address
    from mcpace.server.telemetry.prometheus import PrometheusDurations

SpanNames = Literal["conventions", "dotted"]
"""``conventions``: ``tools/call add``, by OpenTelemetry's conventions for MCP. ``dotted``: ``mcp.tools.call``, as in
older packages, with their attribute ``mcp.binding.name``."""

ENABLED, SPAN_NAMES = "MCPACE_TELEMETRY", "MCPACE_SPAN_NAMES"
"""Environment variables: ``on`` or ``off``; one of :data:`SpanNames`."""

_durations: list[PrometheusDurations] = []
"""The histogram for Prometheus, where one is served."""
_configured: dict[str, Any] = {"enabled": None, "span_names": None}


def configure(*, enabled: bool | None = None, span_names: SpanNames | None = None) -> None:
    """Configures servers that are served from now on, and overrides the environment. ``None`` leaves a setting
    unchanged."""
    if span_names is not None:
        if span_names not in get_args(SpanNames):
            raise ValueError(f"span_names takes {' or '.join(get_args(SpanNames))}, not {span_names!r}")
        _configured["span_names"] = span_names
    if enabled is not None:
        _configured["enabled"] = enabled


def observe(core: _core.Server, registry: Registry | None = None) -> None:
    """Records a server's requests if a provider is set; ``registry`` has the names of its resources.

    Raises ``UsageProblem`` for an unknown setting.
    """
    is_provided = _is_set("trace", "_TRACER_PROVIDER") or _is_set("metrics._internal", "_METER_PROVIDER")
    is_traced = _is_enabled() and is_provided
    if is_traced or _durations:
        from mcpace.server.telemetry.spans import start_recorder

        start_recorder(core, span_names(), registry, next(iter(_durations), None), is_traced=is_traced)


def serve_metrics(address: Address) -> None:
    """Serves the metrics of this process's servers to Prometheus. The servers are made afterwards.

    Raises :class:`SetupProblem` where the port is in use, or a package is missing.
    """
    from mcpace.server.running.errors import SetupProblem

    try:
        from mcpace.server.telemetry.prometheus import PrometheusDurations
    except ModuleNotFoundError as error:
        raise SetupProblem(
            f"--metrics-port needs {error.name}, which is not installed: pip install 'mcpace[otel]'"
        ) from error
    if not _durations:
        _durations.append(PrometheusDurations())
    try:
        _durations[0].listen(address)
    except OSError as error:
        raise SetupProblem(
            f"cannot serve metrics at {address} ({error.strerror}): choose another --metrics-port or --metrics-host"
        ) from error


def observe_metrics(core: _core.Server) -> None:
    """Records the requests of a server of another SDK for Prometheus; its spans are its SDK's.

    Does nothing where the requests are recorded already, or no metrics are served.
    """
    if _durations:
        from mcpace.server.telemetry.spans import start_recorder

        start_recorder(core, span_names(), None, _durations[0], is_traced=False)


def span_names() -> SpanNames:
    """The naming of spans."""
    configured: SpanNames | None = _configured["span_names"]
    return configured or cast("SpanNames", _given(SPAN_NAMES, get_args(SpanNames)))


def _is_enabled() -> bool:
    configured: bool | None = _configured["enabled"]
    return _given(ENABLED, ("on", "off")) == "on" if configured is None else configured


def _given(variable: str, choices: tuple[str, ...]) -> str:
    """The value of an environment variable; the first of the choices if it is not set."""
    given = os.environ.get(variable) or choices[0]
    if given not in choices:
        from mcpace.server.running.errors import UsageProblem

        raise UsageProblem(f"{variable} takes {' or '.join(choices)}, not {given!r}")
    return given


def _is_set(module: str, provider: str) -> bool:
    """Whether a provider is set. The API returns an empty provider if none is, and creates a provider that the
    environment names on first access."""
    api = sys.modules.get(f"opentelemetry.{module}")
    if getattr(api, provider, None) is not None:
        return True
    return bool(os.environ.get(f"OTEL_PYTHON{provider}")) and "opentelemetry.sdk" in sys.modules
