"""A dialogue of one client with a server behind the balancer: a session, and single requests in it.

The client is the runtime's. It begins a new session by itself where a copy does not know its session; the balancer has
then seen the refusal, which a client without that would have failed by.
"""

from __future__ import annotations

import json
from typing import Any

from mcpace import _core
from mcpace.lab.targets import Tool

ANSWERS = {"boolean": True, "integer": 1, "number": 1, "array": [], "object": {}}
"""An answer for a property of a question, by its type."""


class Dialogue:
    """A session over HTTP. Methods raise :class:`mcpace._core.CallProblem` where they fail."""

    def __init__(self, url: str, revision: str, limit_s: float) -> None:
        settings = {
            "mode": revision,
            "cache": False,
            "call_time_s": limit_s,
            "connect_time_s": limit_s,
            "answered": {"elicitation": {"form": {}}},
        }
        self.questions = 0
        """Number of the server's questions that were answered."""
        self._caller = _core.Caller.connect(url, json.dumps(settings).encode(), self._answer, in_loop=False).wait()

    @property
    def revision(self) -> str:
        """The revision that was agreed."""
        return str(self._caller.server()[0])

    @property
    def server_name(self) -> str:
        """Name and version by which the server introduces itself."""
        info = json.loads(self._caller.server()[2]).get("serverInfo") or {}
        return f"{info.get('name', '')} {info.get('version', '')}".strip()

    def list(self) -> list[dict[str, Any]]:
        """The first page of the tools."""
        return list(json.loads(self._caller.list("tools").wait()).get("tools", []))

    def call(self, tool: Tool) -> None:
        """Calls a tool. A failure that the tool reports is no failure here: the copy has answered."""
        self._caller.call_tool(tool.name, json.dumps(tool.arguments)).wait()

    def listen(self) -> None:
        """Opens the stream of the server's own notifications, and closes it."""
        listening = self._caller.listen(b'{"toolsListChanged": true}').wait()
        listening.close().wait()

    def close(self) -> None:
        """Ends the session. A copy that is gone is no failure."""
        try:
            self._caller.close().wait()
        except _core.CallProblem:
            return

    def _answer(self, question: _core.Question) -> None:
        if question.method != "elicitation/create":
            question.refuse(-32601, "this client answers questions of elicitation only")
            return
        schema = json.loads(question.params or b"{}").get("requestedSchema", {})
        properties = schema.get("properties", {})
        content = {
            name: (of.get("enum") or [ANSWERS.get(str(of.get("type")), "yes")])[0]
            for name, of in properties.items()
            if isinstance(of, dict)
        }
        self.questions += 1
        question.answer(json.dumps({"action": "accept", "content": content}))


def reason(problem: BaseException) -> str:
    """The reason that a failed request told its caller."""
    return str(problem.args[1] if len(problem.args) > 1 else problem)
