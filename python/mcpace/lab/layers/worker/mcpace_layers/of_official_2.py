"""Probe of ``MCPServer`` of the official SDK 2.x.

Functions used: ``_tool_manager.get_tool`` and ``.list_tools``, ``Tool.fn``, ``Tool.context_kwarg``,
``Tool.resolved_params``, ``Tool.fn_metadata.validate_arguments``, ``MCPServer.call_tool``, ``mcp.Client(server)``,
``streamable_http_app``.
"""

from __future__ import annotations

from functools import partial

from mcpace_layers import asgi
from mcpace_layers.layer import CoroutineLayer, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served
from mcpace_layers.problem import Unmeasured, wrong_arguments

PATH = "/mcp"


class Official2(Probe):
    """Probe of the official SDK 2.x."""

    sdk = "python"
    package = "mcp"

    def tools(self) -> list[str]:
        return [tool.name for tool in self.target.server._tool_manager.list_tools()]

    def direct(self) -> Layer:
        tool = self.target.server._tool_manager.get_tool(self.target.tool)
        try:
            keywords = tool.fn_metadata.validate_arguments(self.target.arguments)
        except ValueError as error:
            raise wrong_arguments(self.target.tool, error) from error
        if tool.context_kwarg is not None or getattr(tool, "resolved_params", None):
            raise Unmeasured("the tool takes what only a request has (a context, a dependency)")
        return self.call_directly(tool.fn, keywords)

    def handler(self) -> Layer:
        call = partial(self.target.server.call_tool, self.target.tool, self.target.arguments)
        includes = (
            "MCPServer.call_tool: name lookup, validation, the call (plain functions in a thread of their own), "
            "its result as content blocks"
        )
        return CoroutineLayer(HANDLER, includes, self.result_check(HANDLER), self.target.loop, call)

    def in_process(self) -> Layer:
        from mcp.client.client import Client

        client = self.target.loop.enter(Client(self.target.server))
        call = partial(client.call_tool, self.target.tool, self.target.arguments)
        includes = "mcp.Client connected to the server object, as the SDK connects them: no socket"
        return CoroutineLayer(IN_PROCESS, includes, self.result_check(IN_PROCESS), self.target.loop, call)

    def serve(self) -> Served:
        return asgi.serve(self.target.server.streamable_http_app(), PATH, lifespan="on")
