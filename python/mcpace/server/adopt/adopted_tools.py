"""The tools of an adopted server, and which of them the runtime calls itself. Follows changes of the list."""

from __future__ import annotations

import json
from typing import Any

from mcpace.server.adopt import fast_path_fastmcp, fast_path_official
from mcpace.server.adopt.eligibility import ineligibility
from mcpace.server.adopt.fast_path import Unfit
from mcpace.server.adopt.server_kinds import Kind
from mcpace.server.adopt.summary import Left, Summary


class Tools:
    """All tools of one server object, as of the last :meth:`renew`."""

    def __init__(self, server: Any, kind: Kind, low: Any, core: Any) -> None:
        self._server, self._kind, self._low, self._core = server, kind, low, core
        self._why: str | None = None
        self._known: dict[str, int] = {}
        self._left: dict[str, str] = {}
        self._adopted: set[str] = set()
        # The objects are kept alive, so that the id of a removed one is not reused.
        self._tools: dict[str, Any] = {}
        self.renew()

    def renew(self) -> None:
        """Registers new tools, and removes those that disappeared or were replaced. Cheap if nothing changed."""
        why = ineligibility(self._server, self._kind, self._low)
        tools = {} if why is not None else self._all_tools()
        if why == self._why and self._known == {name: id(tool) for name, tool in tools.items()}:
            return
        for name in [name for name in self._adopted if tools.get(name) is not self._tools[name]]:
            self._core.remove_tool(name)
            self._adopted.discard(name)
        for name, tool in tools.items():
            if tool is not self._tools.get(name):
                self._left.pop(name, None)
                self._adopt_tool(name, tool)
        self._why, self._tools = why, tools
        self._known = {name: id(tool) for name, tool in tools.items()}
        self._left = {name: reason for name, reason in self._left.items() if name in tools}

    @property
    def count(self) -> int:
        """The number of tools, as far as known."""
        return 0 if self._kind is Kind.LOWLEVEL else len(self._all_tools())

    def summary(self, sdk: str) -> Summary:
        """The result of the adoption: of the tools, and of the server's other parts."""
        counts = self._component_counts()
        left = [Left(name, reason) for name, reason in self._left.items()]
        return Summary(sdk, sorted(self._adopted), left, *counts, whole=self._why)

    def _adopt_tool(self, name: str, tool: Any) -> None:
        from mcpace import _core

        make = fast_path_fastmcp.handler if self._kind is Kind.FASTMCP else fast_path_official.handler
        try:
            handler = make(tool, self._server)
            # The SDK answers lists. This entry serves the look-up, and the headers that mirror arguments.
            listed = {"name": name, "inputSchema": tool.parameters}
            self._core.add_tool(json.dumps(listed), handler)
        except Unfit as reason:
            self._left[name] = str(reason)
        except _core.RegistrationProblem as problem:
            self._left[name] = str(problem)
        else:
            self._adopted.add(name)

    def _all_tools(self) -> dict[str, Any]:
        if self._kind is Kind.FASTMCP:
            return fast_path_fastmcp.tools_of(self._server)
        return dict(self._server._tool_manager._tools)

    def _component_counts(self) -> tuple[int, int, int]:
        """The numbers of resources, templates and prompts."""
        if self._kind is Kind.LOWLEVEL:
            return (0, 0, 0)
        if self._kind is Kind.FASTMCP:
            return fast_path_fastmcp.counts(self._server)
        resources, prompts = self._server._resource_manager, self._server._prompt_manager
        return (len(resources._resources), len(resources._templates), len(prompts._prompts))
