"""Probe of mcpace's own servers: ``mcpace.MCPServer`` and ``mcpace.fastmcp.FastMCP``.

Functions used: ``server.registry.tools``, ``Tool.fn``, ``Tool.arguments.validate``, ``mcpace.Client(server)``, and the
functions of ``mcpace.server.running`` that ``mcpace serve`` calls. The handler is compiled and can't be called from
Python. Its time comes from the runtime's own clocks, in calls over the socket that request layer timings.
"""

from __future__ import annotations

import threading
from functools import partial

from mcpace_layers.layer import CoroutineLayer, Layer
from mcpace_layers.probe import IN_PROCESS, Probe, Served
from mcpace_layers.problem import SETUP, Problem, Unmeasured, wrong_arguments


class Mcpace(Probe):
    """Probe of mcpace's own servers."""

    sdk = "mcpace"
    package = "mcpace"
    reports_handler = True

    def tools(self) -> list[str]:
        return list(self.target.server.registry.tools)

    def direct(self) -> Layer:
        tool = self.target.server.registry.tools[self.target.tool]
        try:
            keywords = tool.arguments.validate(self.target.arguments)
        except Exception as error:
            raise wrong_arguments(self.target.tool, error) from error
        if tool.context_kwarg or tool.resolved:
            raise Unmeasured("the tool takes what only a request has (a context, a dependency)")
        return self.call_directly(getattr(tool, "bare", tool.fn), keywords)

    def handler(self) -> Layer:
        raise Unmeasured("its time is told by a served server, and none was served")

    def in_process(self) -> Layer:
        from mcpace import Client

        client = self.target.loop.enter(Client(self.target.server))
        call = partial(client.call_tool, self.target.tool, self.target.arguments)
        includes = "mcpace.Client connected to the server object: JSON-RPC both ways, no socket"
        return CoroutineLayer(IN_PROCESS, includes, self.result_check(IN_PROCESS), self.target.loop, call)

    def serve(self) -> Served:
        from mcpace import _core
        from mcpace.server.running.addresses import Address
        from mcpace.server.running.in_process import HttpServer as Running
        from mcpace.server.running.prepared import prepare
        from mcpace.server.running.settings import Settings

        running = Running(prepare(self.target.server), Settings(port=0), Address("127.0.0.1", 0))
        try:
            running.enter()
            url = running.begin()
        except Exception as error:
            raise Problem(SETUP, f"the server could not be served: {error}") from error

        def wait() -> None:
            threading.Event().wait()
            running.end()

        debug = " (a debug build: its figures mean nothing)" if getattr(_core, "DEBUG", False) else ""
        return Served(url, f"mcpace {self.version()}, one process{debug}", wait)
