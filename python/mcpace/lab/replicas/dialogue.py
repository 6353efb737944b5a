"""A dialogue of one client with a server behind the balancer: a session, and single requests in it.

The client is the runtime's. It begins a new session by itself where a copy does not know its session; the balancer has
then seen the refusal, which a client without that would have failed by.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcpace import _core
from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.lab.targets import Tool

CHANGES = b'{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}'
CLOSE_LIMIT_S = 5.0
ANSWERS = {"boolean": True, "integer": 1, "number": 1, "array": [], "object": {}}
"""An answer for a property of a question, by its type."""


class Dialogue:
    """A session over HTTP. Methods raise :class:`mcpace._core.CallProblem` where they fail."""

    def __init__(self, url: str, revision: str, limit_s: float, *, tasks: bool = False) -> None:
        settings = {
            "mode": revision,
            "tasks": tasks,
            "cache": False,
            "call_time_s": limit_s,
            "connect_time_s": limit_s,
            "answered": {"elicitation": {"form": {}}},
        }
        self.questions = 0
        """Number of the server's questions that were answered."""
        self._changed = threading.Event()
        self._caller = _core.Caller.connect(
            url, json.dumps(settings).encode(), self._answer, hears=self._hear, in_loop=False
        ).wait()

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

    def call(self, tool: Tool, limit_s: float | None = None) -> None:
        """Calls a tool. A failure that the tool reports is no failure here: the copy has answered.

        ``limit_s``: limit for the whole call, which may be a task; each request of it has the session's limit.
        """
        self._caller.call_tool(tool.name, json.dumps(tool.arguments)).wait(limit_s)

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Listens for changes of lists while the block runs. A session has a stream for them anyway."""
        self._changed.clear()
        if self.revision < STATELESS_SINCE:
            yield
            return
        listening = self._caller.listen(CHANGES).wait()
        thread = threading.Thread(target=self._take_changes, args=(listening,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.close().wait()
            thread.join(CLOSE_LIMIT_S)

    def await_change(self, until: float) -> None:
        """Waits until a change was heard, or fails at an instant of the monotonic clock."""
        if not self._changed.wait(max(until - time.monotonic(), 0.0)):
            raise _core.CallProblem("not-heard", "the notification of a changed list did not come", None)

    def close(self) -> None:
        """Ends the session. A copy that is gone is no failure."""
        try:
            self._caller.close().wait()
        except _core.CallProblem:
            return

    def _hear(self, method: str, _: str | None) -> None:
        if method.endswith("/list_changed"):
            self._changed.set()

    def _take_changes(self, listening: _core.Listening) -> None:
        try:
            while listening.next().wait() is not None:
                self._changed.set()
        except _core.CallProblem:
            # The stream ended with its copy: what is missing shows at the wait.
            return

    def _answer(self, question: _core.Question) -> None:
        if question.method != "elicitation/create":
            question.refuse(-32601, "this client answers questions of elicitation only")
            return
        schema = json.loads(question.params or b"{}").get("requestedSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        content = {}
        for name, of in (properties if isinstance(properties, dict) else {}).items():
            if isinstance(of, dict):
                choices = of.get("enum")
                likely = ANSWERS.get(str(of.get("type")), "yes")
                content[name] = choices[0] if isinstance(choices, list) and choices else likely
        self.questions += 1
        question.answer(json.dumps({"action": "accept", "content": content}))


def reason(problem: BaseException) -> str:
    """The reason that a failed request told its caller."""
    return str(problem.args[1] if len(problem.args) > 1 else problem)
