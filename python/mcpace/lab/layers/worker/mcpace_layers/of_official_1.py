"""Probe of ``FastMCP`` of the official SDK 1.x.

Functions used: ``_tool_manager.get_tool`` and ``.list_tools``, ``Tool.fn``, ``Tool.context_kwarg``,
``Tool.fn_metadata`` (``pre_parse_json``, ``arg_model``, ``model_dump_one_level``), ``FastMCP.call_tool``,
``mcp.shared.memory.create_connected_server_and_client_session``, ``_mcp_server``, ``streamable_http_app``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mcpace_layers import asgi
from mcpace_layers.layer import CoroutineLayer, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served, accept
from mcpace_layers.problem import Unmeasured, wrong_arguments


class Official1(Probe):
    """Probe of the official SDK 1.x."""

    sdk = "python"
    package = "mcp"

    def tools(self) -> list[str]:
        return [tool.name for tool in self.target.server._tool_manager.list_tools()]

    def direct(self) -> Layer:
        tool = self.target.server._tool_manager.get_tool(self.target.tool)
        keywords = self._validate_arguments(tool)
        if tool.context_kwarg is not None:
            raise Unmeasured("the tool takes what only a request has (a context)")
        return self.call_directly(tool.fn, keywords)

    def handler(self) -> Layer:
        call = partial(self.target.server.call_tool, self.target.tool, self.target.arguments)
        includes = (
            "FastMCP.call_tool: name lookup, validation, the call (plain functions on the event loop's own thread), "
            "its result as content blocks; not the low-level server's check of the output"
        )
        return CoroutineLayer(HANDLER, includes, accept, self.target.loop, call)

    def in_process(self) -> Layer:
        from mcp.shared.memory import create_connected_server_and_client_session

        connected = create_connected_server_and_client_session(self.target.server._mcp_server)
        session = self.target.loop.enter(connected)
        call = partial(session.call_tool, self.target.tool, self.target.arguments)
        includes = "the SDK's client session over its in-memory streams, no socket"
        return CoroutineLayer(IN_PROCESS, includes, self.result_check(IN_PROCESS), self.target.loop, call)

    def serve(self) -> Served:
        server = self.target.server
        return asgi.serve(server.streamable_http_app(), server.settings.streamable_http_path, lifespan="on")

    def _validate_arguments(self, tool: Any) -> dict[str, Any]:
        metadata = tool.fn_metadata
        parsed = metadata.pre_parse_json(dict(self.target.arguments))
        try:
            keywords: dict[str, Any] = metadata.arg_model.model_validate(parsed).model_dump_one_level()
        except ValueError as error:
            raise wrong_arguments(self.target.tool, error) from error
        return keywords
