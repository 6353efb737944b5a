"""Measures the server's layers during a load, by an additional user that requests layer timings.

Design constraint: The load's own requests and results stay unchanged. Beside the load, an instrumented client makes the
load's calls rarely and sequentially: at most ten a second, and few enough that their recording stays small. Their
results are not part of the load's; the Run reports their number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from mcpace import _core
from mcpace.lab.load.check import render_templates
from mcpace.lab.load.plan import Operation

EVERY_S = 0.1
MOST = 1_000
"""Most calls in total: a long load gets fewer calls a second."""
FAILURES = 3
"""Consecutive failures after which no further call is made."""
END_S = 5.0


class LayerSampler:
    """Makes instrumented calls during the ``with`` block."""

    def __init__(
        self,
        make: Callable[[], _core.Client],
        operations: Sequence[Operation],
        data: Mapping[str, list[str]],
        planned_s: float,
    ) -> None:
        self._calls = [
            (one.tool, render_templates(one.arguments or {}, data)) for one in operations if one.tool is not None
        ]
        self._client = make()
        self._every_s = max(EVERY_S, planned_s / MOST)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample_layers, name="mcpace-layers", daemon=True)

    def __enter__(self) -> Self:
        if self._calls:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.ident is not None:
            # The client's current call may hang as long as those of the load.
            self._thread.join(END_S)

    def ledger_sum(self) -> dict[str, Any]:
        """Sum of the ledgers of all calls that returned. Call it after the ``with`` block."""
        explained = self._client.recording().explained()
        calls = [call for call, _, ended, _ in explained.trials("call") if ended == "ok"]
        # The first call is cold: it may open the session's connection.
        return explained.sum(calls[1:] or calls)

    def _sample_layers(self) -> None:
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
