"""Probe of ``FastMCP`` of the official SDK 1.x.

Functions used: ``_tool_manager.get_tool`` and ``.list_tools``, ``Tool.fn``, ``Tool.context_kwarg``,
``Tool.fn_metadata`` (``pre_parse_json``, ``arg_model``, ``model_dump_one_level``), ``FastMCP.call_tool``,
``mcp.shared.memory.create_connected_server_and_client_session``, ``_mcp_server``, ``streamable_http_app``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mcpace_layers import asgi
from mcpace_layers.layer import Awaited, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served, accept
from mcpace_layers.problem import Unmeasured, wrong_arguments


class Official1(Probe):
    """Probe of the official SDK 1.x."""

    sdk = "python"
    package = "mcp"

    def tools(self) -> list[str]:
        return [tool.name for tool in self.asked.server._tool_manager.list_tools()]

    def direct(self) -> Layer:
        tool = self.asked.server._tool_manager.get_tool(self.asked.tool)
        keywords = self._validated(tool)
        if tool.context_kwarg is not None:
            raise Unmeasured("the tool takes what only a request has (a context)")
        return self.call_directly(tool.fn, keywords)

    def handler(self) -> Layer:
        call = partial(self.asked.server.call_tool, self.asked.tool, self.asked.arguments)
        includes = (
            "FastMCP.call_tool: name lookup, validation, the call (plain functions on the event loop's own thread), "
            "its result as content blocks; not the low-level server's check of the output"
        )
        return Awaited(HANDLER, includes, accept, self.asked.loop, call)

    def in_process(self) -> Layer:
        from mcp.shared.memory import create_connected_server_and_client_session

        connected = create_connected_server_and_client_session(self.asked.server._mcp_server)
        session = self.asked.loop.enter(connected)
        call = partial(session.call_tool, self.asked.tool, self.asked.arguments)
        includes = "the SDK's client session over its in-memory streams, no socket"
        return Awaited(IN_PROCESS, includes, self.checks(IN_PROCESS), self.asked.loop, call)

    def serve(self) -> Served:
        server = self.asked.server
        return asgi.serve(server.streamable_http_app(), server.settings.streamable_http_path, lifespan="on")

    def _validated(self, tool: Any) -> dict[str, Any]:
        metadata = tool.fn_metadata
        parsed = metadata.pre_parse_json(dict(self.asked.arguments))
        try:
            keywords: dict[str, Any] = metadata.arg_model.model_validate(parsed).model_dump_one_level()
        except ValueError as error:
            raise wrong_arguments(self.asked.tool, error) from error
        return keywords
