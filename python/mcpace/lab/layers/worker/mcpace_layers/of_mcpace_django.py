"""``mcpace.django.MCPServer``: as mcpace's other servers, but that its tools are specs.

Called of it beside what ``of_mcpace`` names: ``SpecTool.runs`` and of that ``_service.function`` and ``_reader``.
"""

from __future__ import annotations

from mcpace_layers.django_calls import keywords, validated
from mcpace_layers.layer import Layer
from mcpace_layers.of_mcpace import Mcpace
from mcpace_layers.problem import Unmeasured


class McpaceDjango(Mcpace):
    """See the module."""

    sdk = "mcpace-django"

    def direct(self) -> Layer:
        tool = self.asked.server.registry.tools[self.asked.tool]
        runs = getattr(tool, "runs", None)
        if runs is None:
            return super().direct()
        service = getattr(runs, "_service", None)
        if service is None:
            raise Unmeasured("the tool has no single function that could be called")
        reader = runs._reader
        data = validated(None if reader is None else reader._class, self.asked)
        return self.call_directly(service.function, keywords(service.function, data))
