"""mcpace's own servers: ``mcpace.MCPServer`` and ``mcpace.fastmcp.FastMCP``.

Called of mcpace: ``server.registry.tools``, ``Tool.fn``, ``Tool.arguments.validate``, ``mcpace.Client(server)``, and
of ``mcpace.server.running`` what ``mcpace serve`` calls. The handler is compiled and has no way in from Python: its
time is what the runtime's own clocks tell of calls that ask for it (``_meta`` key ``dev.mcpace/timing``).
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from mcpace_layers.layer import Awaited, Layer, Told
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served, accept, official_failure
from mcpace_layers.problem import SETUP, Problem, Unmeasured, failed, wrong_arguments

TIMING = "dev.mcpace/timing"


class Mcpace(Probe):
    """See the module."""

    sdk = "mcpace"
    package = "mcpace"
    _opened: Any = None

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
        client, asked = self._client(), self.asked
        includes = (
            "name lookup, permissions and limits, validation, the call, its result as JSON: the runtime's own clocks, "
            "in calls of the in-process layer"
        )

        async def call() -> int:
            result = await client.call_tool(asked.tool, asked.arguments, meta={TIMING: True})
            self._check(result)
            told = (result.meta or {}).get(TIMING)
            if told is None:
                raise Unmeasured("this mcpace tells no layers over an in-process client")
            return int(told["dispatch_ns"]) + int(told["service_ns"])

        return Told(HANDLER, includes, accept, asked.loop, call)

    def in_process(self) -> Layer:
        call = partial(self._client().call_tool, self.asked.tool, self.asked.arguments)
        includes = "mcpace.Client connected to the server object: JSON-RPC both ways, no socket"
        return Awaited(IN_PROCESS, includes, self._check, self.asked.loop, call)

    def serve(self) -> Served:
        from mcpace.server.running.addresses import Address
        from mcpace.server.running.in_process import Served as Running
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

        return Served(url, f"mcpace {self.version()}, one process", wait)

    def _client(self) -> Any:
        if self._opened is None:
            from mcpace import Client

            self._opened = self.asked.loop.enter(Client(self.asked.server))
        return self._opened

    def _check(self, result: Any) -> None:
        if (why := official_failure(result)) is not None:
            raise failed(self.asked.tool, IN_PROCESS, why)
