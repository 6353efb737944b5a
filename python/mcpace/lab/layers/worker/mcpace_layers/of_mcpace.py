"""Probe of mcpace's own servers: ``mcpace.MCPServer`` and ``mcpace.fastmcp.FastMCP``.

Functions used: ``server.registry.tools``, ``Tool.fn``, ``Tool.arguments.validate``, ``mcpace.Client(server)``, and the
functions of ``mcpace.server.running`` that ``mcpace serve`` calls. The handler is compiled and can't be called from
Python. Its time comes from the runtime's own clocks, in calls over the socket that request layer timings.
"""

from __future__ import annotations

import threading
from functools import partial

from mcpace_layers.layer import Awaited, Layer
from mcpace_layers.probe import IN_PROCESS, HttpServer, Probe
from mcpace_layers.problem import SETUP, Problem, Unmeasured, wrong_arguments


class Mcpace(Probe):
    """Probe of mcpace's own servers."""

    sdk = "mcpace"
    package = "mcpace"
    tells = True

    def tools(self) -> list[str]:
        return list(self.asked.server.registry.tools)

    def direct(self) -> Layer:
        tool = self.asked.server.registry.tools[self.asked.tool]
        try:
            keywords = tool.arguments.validate(self.asked.arguments)
        except Exception as error:
            raise wrong_arguments(self.asked.tool, error) from error
        if tool.context_kwarg or tool.resolved:
            raise Unmeasured("the tool takes what only a request has (a context, a dependency)")
        return self.call_directly(getattr(tool, "bare", tool.fn), keywords)

    def handler(self) -> Layer:
        raise Unmeasured("its time is told by a served server, and none was served")

    def in_process(self) -> Layer:
        from mcpace import Client

        client = self.asked.loop.enter(Client(self.asked.server))
        call = partial(client.call_tool, self.asked.tool, self.asked.arguments)
        includes = "mcpace.Client connected to the server object: JSON-RPC both ways, no socket"
        return Awaited(IN_PROCESS, includes, self.checks(IN_PROCESS), self.asked.loop, call)

    def serve(self) -> HttpServer:
        from mcpace import _core
        from mcpace.server.running.addresses import Address
        from mcpace.server.running.in_process import HttpServer as Running
        from mcpace.server.running.prepared import prepare
        from mcpace.server.running.settings import Settings

        running = Running(prepare(self.asked.server), Settings(port=0), Address("127.0.0.1", 0))
        try:
            running.enter()
            url = running.begin()
        except Exception as error:
            raise Problem(SETUP, f"the server could not be served: {error}") from error

        def wait() -> None:
            threading.Event().wait()
            running.end()

        debug = " (a debug build: its figures mean nothing)" if getattr(_core, "DEBUG", False) else ""
        return HttpServer(url, f"mcpace {self.version()}, one process{debug}", wait)
