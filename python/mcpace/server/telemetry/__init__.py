"""Traces and metrics by OpenTelemetry: whether there are any, and by what names.

A server is traced where a tracer provider or a meter provider was set before it is served, as the OpenTelemetry SDK's
own set-up or ``opentelemetry-instrument`` do; nothing else is to be done.

Design constraint: without one, nothing of OpenTelemetry is imported and a call pays one branch. What is told stands in
``spans.py``, which is only loaded where there is somebody to tell.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.core.registry import Registry

SpanNames = Literal["conventions", "dotted"]
"""``conventions``: ``tools/call add``, by OpenTelemetry's conventions for MCP. ``dotted``: ``mcp.tools.call``, as older
packages have it, and with their attribute ``mcp.binding.name``."""

ENABLED, SPAN_NAMES = "MCPACE_TELEMETRY", "MCPACE_SPAN_NAMES"
"""Environment variables: ``on`` or ``off``; one of :data:`SpanNames`."""

_configured: dict[str, Any] = {"enabled": None, "span_names": None}


def configure(*, enabled: bool | None = None, span_names: SpanNames | None = None) -> None:
    """What holds for servers that are served from now on; goes over the environment. ``None`` leaves it as it was."""
    if span_names is not None:
        if span_names not in get_args(SpanNames):
            raise ValueError(f"span_names takes {' or '.join(get_args(SpanNames))}, not {span_names!r}")
        _configured["span_names"] = span_names
    if enabled is not None:
        _configured["enabled"] = enabled


def observe(core: _core.Server, registry: Registry | None = None) -> None:
    """Has a server's requests told, where anybody listens; ``registry`` knows what its resources are called.

    Raises ``UsageProblem`` for a setting that there isn't.
    """
    if _is_enabled() and (_is_set("trace", "_TRACER_PROVIDER") or _is_set("metrics._internal", "_METER_PROVIDER")):
        from mcpace.server.telemetry.spans import tell

        tell(core, span_names(), registry)


def span_names() -> SpanNames:
    """How spans are called."""
    configured: SpanNames | None = _configured["span_names"]
    return configured or cast("SpanNames", _given(SPAN_NAMES, get_args(SpanNames)))


def _is_enabled() -> bool:
    configured: bool | None = _configured["enabled"]
    return _given(ENABLED, ("on", "off")) == "on" if configured is None else configured


def _given(variable: str, choices: tuple[str, ...]) -> str:
    """What the environment says; the first of the choices where it says nothing."""
    given = os.environ.get(variable) or choices[0]
    if given not in choices:
        from mcpace.server.running.errors import UsageProblem

        raise UsageProblem(f"{variable} takes {' or '.join(choices)}, not {given!r}")
    return given


def _is_set(module: str, provider: str) -> bool:
    """Whether a provider was set. Asking the API for it gives an empty one where none was; one that the environment
    names is made by the API when it is first asked for."""
    api = sys.modules.get(f"opentelemetry.{module}")
    if getattr(api, provider, None) is not None:
        return True
    return bool(os.environ.get(f"OTEL_PYTHON{provider}")) and "opentelemetry.sdk" in sys.modules
