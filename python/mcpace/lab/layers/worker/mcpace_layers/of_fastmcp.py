"""Probe of FastMCP's own ``FastMCP``, 2.x to 4.x.

Functions used: ``list_tools`` (2.x: ``get_tools``), ``get_tool``, ``Tool.fn``, ``Tool.parameters``, ``call_tool`` (2.x:
``_call_tool_mcp``, or ``_mcp_call_tool``), ``fastmcp.Client(server)``, ``http_app``.
"""

from __future__ import annotations

import inspect
from functools import partial

from mcpace_layers import asgi
from mcpace_layers.layer import CoroutineLayer, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served, convert_arguments
from mcpace_layers.problem import Unmeasured

PATH = "/mcp"
DISPATCHES = ("call_tool", "_call_tool_mcp", "_mcp_call_tool")


class FastMcp(Probe):
    """Probe of FastMCP 2.x to 4.x."""

    sdk = "fastmcp"
    package = "fastmcp"

    def tools(self) -> list[str]:
        server, run = self.target.server, self.target.loop.run
        if hasattr(server, "get_tools"):
            return list(run(server.get_tools()))
        return [tool.name for tool in run(server.list_tools())]

    def direct(self) -> Layer:
        tool = self.target.loop.run(self.target.server.get_tool(self.target.tool))
        function = tool.fn
        parameters = inspect.signature(function).parameters.values()
        taken = set(tool.parameters.get("properties", {}))
        wanted = [one.name for one in parameters if one.default is one.empty and one.name not in taken]
        if any(one.kind is not one.VAR_KEYWORD for one in parameters if one.name in wanted):
            raise Unmeasured(f"the tool takes what only a request has ({', '.join(wanted)})")
        return self.call_directly(function, convert_arguments(function, self.target.arguments, self.target.tool))

    def handler(self) -> Layer:
        server = self.target.server
        name = next((name for name in DISPATCHES if hasattr(server, name)), DISPATCHES[0])
        call = partial(getattr(server, name), self.target.tool, self.target.arguments)
        includes = (
            f"FastMCP.{name}: middleware, name lookup, validation, the call (from 3.x on plain functions in a thread), "
            "its result as content blocks"
        )
        return CoroutineLayer(HANDLER, includes, self.result_check(HANDLER), self.target.loop, call)

    def in_process(self) -> Layer:
        from fastmcp import Client

        client = self.target.loop.enter(Client(self.target.server))
        call = partial(client.call_tool, self.target.tool, self.target.arguments)
        includes = "fastmcp.Client connected to the server object, no socket"
        return CoroutineLayer(IN_PROCESS, includes, self.result_check(IN_PROCESS), self.target.loop, call)

    def serve(self) -> Served:
        return asgi.serve(self.target.server.http_app(path=PATH), PATH, lifespan="on")
