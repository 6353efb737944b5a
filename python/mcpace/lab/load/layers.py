"""The server's own account of its layers under a load: one user more, who asks for it.

Design constraint: the load's own requests stay as they are, and its figures are its own. Beside it our instrumented
client makes the same calls, seldom, one after the other: ten a second at most, and so few in all that their recording
stays small. What they cost the server is theirs and no part of the load's figures; how many there were is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from mcpace import _core
from mcpace.lab.load.check import rendered
from mcpace.lab.load.plan import Operation

EVERY_S = 0.1
MOST = 1_000
"""Calls in all: a long load is asked less often."""
FAILURES = 3
"""One after another, and nothing more is asked."""
END_S = 5.0


class Beside:
    """Asks from when it is entered until it is left."""

    def __init__(
        self,
        make: Callable[[], _core.Client],
        operations: Sequence[Operation],
        data: Mapping[str, list[str]],
        planned_s: float,
    ) -> None:
        self._calls = [(one.tool, rendered(one.arguments or {}, data)) for one in operations if one.tool is not None]
        self._client = make()
        self._every_s = max(EVERY_S, planned_s / MOST)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="mcpace-layers", daemon=True)

    def __enter__(self) -> Self:
        if self._calls:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.ident is not None:
            # A call of its own may hang as long as the target's do.
            self._thread.join(END_S)

    def sum(self) -> dict[str, Any]:
        """The ledgers of the calls that returned, added up; once it was left."""
        told = self._client.recording().explained()
        calls = [call for call, _, ended, _ in told.trials("call") if ended == "ok"]
        # The first is cold: it may have the session's connection to make.
        return told.sum(calls[1:] or calls)

    def _ask(self) -> None:
        in_a_row = number = 0
        connected = False
        while not self._over.wait(self._every_s) and in_a_row < FAILURES and number < MOST:
            tool, arguments = self._calls[number % len(self._calls)]
            number += 1
            try:
                if not connected:
                    self._client.connect()
                    connected = True
                self._client.call_tool(tool, arguments)
            except _core.ClientProblem:
                self._client.disconnect()
                connected = False
                in_a_row += 1
            else:
                in_a_row = 0
        if connected:
            self._client.disconnect()
