"""Probe of FastMCP's own ``FastMCP``, 2.x to 4.x.

Functions used: ``list_tools`` (2.x: ``get_tools``), ``get_tool``, ``Tool.fn``, ``Tool.parameters``, ``call_tool`` (2.x:
``_call_tool_mcp``, or ``_mcp_call_tool``), ``fastmcp.Client(server)``, ``http_app``.
"""

from __future__ import annotations

import inspect
from functools import partial

from mcpace_layers import asgi
from mcpace_layers.layer import Awaited, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served, typed
from mcpace_layers.problem import Unmeasured

PATH = "/mcp"
DISPATCHES = ("call_tool", "_call_tool_mcp", "_mcp_call_tool")


class FastMcp(Probe):
    """Probe of FastMCP 2.x to 4.x."""

    sdk = "fastmcp"
    package = "fastmcp"

    def tools(self) -> list[str]:
        server, run = self.asked.server, self.asked.loop.run
        if hasattr(server, "get_tools"):
            return list(run(server.get_tools()))
        return [tool.name for tool in run(server.list_tools())]

    def direct(self) -> Layer:
        tool = self.asked.loop.run(self.asked.server.get_tool(self.asked.tool))
        function = tool.fn
        parameters = inspect.signature(function).parameters.values()
        taken = set(tool.parameters.get("properties", {}))
        wanted = [one.name for one in parameters if one.default is one.empty and one.name not in taken]
        if any(one.kind is not one.VAR_KEYWORD for one in parameters if one.name in wanted):
            raise Unmeasured(f"the tool takes what only a request has ({', '.join(wanted)})")
        return self.call_directly(function, typed(function, self.asked.arguments, self.asked.tool))

    def handler(self) -> Layer:
        server = self.asked.server
        name = next((name for name in DISPATCHES if hasattr(server, name)), DISPATCHES[0])
        call = partial(getattr(server, name), self.asked.tool, self.asked.arguments)
        includes = (
            f"FastMCP.{name}: middleware, name lookup, validation, the call (from 3.x on plain functions in a thread), "
            "its result as content blocks"
        )
        return Awaited(HANDLER, includes, self.checks(HANDLER), self.asked.loop, call)

    def in_process(self) -> Layer:
        from fastmcp import Client

        client = self.asked.loop.enter(Client(self.asked.server))
        call = partial(client.call_tool, self.asked.tool, self.asked.arguments)
        includes = "fastmcp.Client connected to the server object, no socket"
        return Awaited(IN_PROCESS, includes, self.checks(IN_PROCESS), self.asked.loop, call)

    def serve(self) -> Served:
        return asgi.serve(self.asked.server.http_app(path=PATH), PATH, lifespan="on")
