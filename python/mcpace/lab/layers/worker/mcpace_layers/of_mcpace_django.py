"""Probe of ``mcpace.django.MCPServer``, whose tools are specs.

Functions used in addition to those of ``of_mcpace``: ``SpecTool.runs``, and its ``_service.function`` and ``_reader``.
"""

from __future__ import annotations

from mcpace_layers.django_calls import keywords, validate_arguments
from mcpace_layers.layer import Layer
from mcpace_layers.of_mcpace import Mcpace
from mcpace_layers.problem import Unmeasured


class McpaceDjango(Mcpace):
    """Probe of mcpace's Django server."""

    sdk = "mcpace-django"

    def direct(self) -> Layer:
        tool = self.target.server.registry.tools[self.target.tool]
        runs = getattr(tool, "runs", None)
        if runs is None:
            return super().direct()
        service = getattr(runs, "_service", None)
        if service is None:
            raise Unmeasured("the tool has no single function that could be called")
        reader = runs._reader
        data = validate_arguments(None if reader is None else reader._class, self.target)
        return self.call_directly(service.function, keywords(service.function, data))
