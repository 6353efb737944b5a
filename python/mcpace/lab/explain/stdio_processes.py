"""Experiments on a server over stdio, with processes that serve all slices.

A server's process takes a third of a second to several seconds until it answers. A slice that started its own process
would measure the start, or end before the first call. Only ``session-per-call`` starts a process for each call, since
it measures the start.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab.errors import LabError, Unreachable, tool_error_text
from mcpace.lab.explain.factors_catalogue import Variant
from mcpace.lab.load.plan import LoadPlan, Operation
from mcpace.lab.load.run_load import Place
from mcpace.lab.load.settings import LoadSettings
from mcpace.report.model.run import Case, Subject, Summary

WARM_UP_S = 0.5
"""Seconds of calls to a new process before its first slice."""
MOST_CALLS = 200
"""Most calls of a slice. More don't make its median more precise, and a recording keeps each call."""


@dataclass
class Processes:
    """The processes of one experiment, one for each revision, and their measurements."""

    stack: ExitStack
    place: Place
    settings: LoadSettings
    plan: LoadPlan
    starts_s: list[float] = field(default_factory=list)
    """Time from starting a process to the end of its handshake."""
    firsts_s: list[float] = field(default_factory=list)
    """First call of each process."""
    slices_s: list[float] = field(default_factory=list)
    """Median call of each slice of the base case."""
    _clients: dict[str, _core.Client] = field(default_factory=dict)

    def measure_base(self, length_s: float) -> float:
        """Measures a slice of the base case and returns its median.

        Raises :class:`mcpace._core.ClientProblem` or :class:`LabError` where a call fails. The next slice then starts a
        new process.
        """
        durations = self._measure_slice(self.plan, length_s)
        self.slices_s.append(durations)
        return durations

    def stdio_variant(self, variant: Variant) -> Variant:
        """Changes a variant so that long-lived processes measure it."""
        plan = variant.plan
        if plan is None:
            return variant
        if variant.code == "session-per-call":
            return replace(variant, plan=None, measure=self._session_per_call)
        return replace(variant, plan=None, measure=lambda length_s: self._measure_slice(plan, length_s))

    def process_cases(self, target: str) -> list[Case]:
        """Cases of the base case's call and of the start of its process."""
        subject = Subject(sdk="mcpace-client", mode=self.plan.revision)
        call = Case(
            subject=subject,
            target=target,
            operation="call",
            tool=self.plan.operations[0].tool,
            trials_s=self.slices_s,
            first_s=self.firsts_s,
            summary=Summary.of(self.slices_s) if self.slices_s else None,
        )
        start = Case(
            subject=subject,
            target=target,
            operation="connect",
            trials_s=self.starts_s,
            starts_process=True,
            summary=Summary.of(self.starts_s) if self.starts_s else None,
        )
        return [call, start]

    def _measure_slice(self, plan: LoadPlan, length_s: float) -> float:
        """Measures a slice. The last operation of ``plan`` is the timed call."""
        *before, call = plan.operations
        client = self._revision_client(plan.revision)
        try:
            return _median_duration(
                lambda: self._list_tools(client, before), lambda: _call_tool(client, call), length_s
            )
        except (_core.ClientProblem, LabError):
            # A process that failed once is not used again.
            del self._clients[plan.revision]
            client.disconnect()
            raise

    def _revision_client(self, revision: str) -> _core.Client:
        if revision not in self._clients:
            client = self._start_client(revision)
            # The first call of a process includes the server's lazy work, so it belongs to no slice.
            start = time.monotonic()
            _call_tool(client, self.plan.operations[0])
            self.firsts_s.append(time.monotonic() - start)
            self._warm_up(client)
            self._clients[revision] = client
        return self._clients[revision]

    def _warm_up(self, client: _core.Client) -> None:
        """Makes calls until the runtime has compiled hot code, so that the first slices aren't slower."""
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            _call_tool(client, self.plan.operations[0])

    def _start_client(self, revision: str) -> _core.Client:
        client = self.place.call_client(replace(self.settings, revision=revision), None, standalone_get=False)
        self.stack.callback(client.disconnect)
        start = time.monotonic()
        client.connect()
        self.starts_s.append(time.monotonic() - start)
        return client

    def _session_per_call(self, length_s: float) -> float:
        start = time.monotonic()
        client = self._start_client(self.plan.revision)
        try:
            _call_tool(client, self.plan.operations[0])
            return time.monotonic() - start
        finally:
            client.disconnect()

    def _list_tools(self, client: _core.Client, operations: list[Operation]) -> None:
        for operation in operations:
            if operation.kind == "list":
                client.list_tools()


def _call_tool(client: _core.Client, operation: Operation) -> None:
    arguments: dict[str, Any] = operation.arguments or {}
    result = client.call_tool(operation.tool or "", arguments)
    if result.get("isError"):
        raise Unreachable(f"the tool answered with an error: {tool_error_text(result)}")


def _median_duration(prepare: Callable[[], None], act: Callable[[], None], length_s: float) -> float:
    until = time.monotonic() + length_s
    durations: list[float] = []
    while not durations or (time.monotonic() < until and len(durations) < MOST_CALLS):
        prepare()
        start = time.monotonic()
        act()
        durations.append(time.monotonic() - start)
    return statistics.median(durations)
