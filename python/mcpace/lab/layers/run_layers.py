"""Measurement of one server's layers: direct call, handler, in-process transport, real socket.

A round has one batch of sequential calls for each layer. Rounds alternate between forward and reverse order, so that
drift of the machine affects all layers alike. A worker in the user's own environment makes the calls and reads the
clock (``worker``). A second worker process serves the socket.
"""

from __future__ import annotations

import json
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from mcpace.lab.errors import LabError, ProgramProblem
from mcpace.lab.layers.worker_process import Worker
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.targets import Tool
from mcpace.report.model.layers import LayerFacts, LayersFacts
from mcpace.report.model.run import Case, Run, Subject

SOCKET = "socket"
ORDER = ("direct", "handler", "in-process", SOCKET)
WITHIN: dict[str, tuple[str, ...]] = {
    "direct": (),
    "handler": ("direct",),
    "in-process": ("direct", "handler"),
    SOCKET: ("direct", "handler"),
}
"""Layers within each layer. The socket excludes ``in-process``, which has another client and an in-memory transport."""
MOST_CALLS = 1_000_000
"""Most calls of a batch."""
SLACK_S = 60.0
"""Seconds beyond its planned time after which a batch counts as hung."""


@dataclass(frozen=True)
class LayersPlan:
    """The server and tool to measure, and the settings of the measurement."""

    place: str
    """``MODULE:SERVER``."""
    tool: Tool
    python: str
    """Python interpreter of the server's environment."""
    rounds: int
    batch_s: float
    warm_up_s: float
    """Warm-up seconds of each layer."""


@dataclass
class _Layer:
    name: str
    includes: str = ""
    calls: int = 1
    batches_s: list[float] = field(default_factory=list)
    unsupported: str | None = None
    error: str | None = None

    @property
    def is_measured(self) -> bool:
        return self.unsupported is None and self.error is None


def run_layers(plan: LayersPlan, progress: Progress) -> Run:
    """Measures the layers. Ctrl-C ends the measurement early; the run is then marked partial.

    Raises :class:`LabError` where the server can't be loaded, or a call of the tool fails.
    """
    options = {
        "target": plan.place,
        "tool": plan.tool.name,
        "arguments": json.dumps(plan.tool.arguments),
        "python": plan.python,
        "rounds": plan.rounds,
        "batch_s": plan.batch_s,
        "warm_up_s": plan.warm_up_s,
    }
    result = new_run("layers", options)
    try:
        with ExitStack() as stack:
            measured = _LayerBench(stack, plan, progress)
            try:
                measured.warm_up(progress)
                measured.run_rounds(progress)
            finally:
                with defer_interrupt():
                    result.layers, result.cases = measured.facts, measured.layer_cases()
    except KeyboardInterrupt:
        result.partial = True
    return result


class _LayerBench:
    """A worker process and its layers."""

    def __init__(self, stack: ExitStack, plan: LayersPlan, progress: Progress) -> None:
        self._plan = plan
        where = (plan.place, plan.tool.name, plan.tool.arguments)
        progress.preparing(f"{plan.place}: loading")
        self._worker = stack.enter_context(Worker.start(plan.python, "measure", *where))
        ready = self._worker.ready
        self.facts = LayersFacts(sdk=ready["sdk"], version=ready["version"], python=ready["python"])
        self._layers = {description["name"]: _described_layer(description) for description in ready["layers"]}
        progress.preparing(f"{plan.place}: serving")
        self._layers |= self._start_server(stack, where)
        for layer in self._layers.values():
            if layer.unsupported:
                progress.note(f"{layer.name} is left out: {layer.unsupported}")

    def warm_up(self, progress: Progress) -> None:
        """Warms up each layer and determines the number of calls in a batch."""
        for layer in self._measurable_layers():
            progress.preparing(f"{self._plan.place}: warming up {layer.name}")
            start = time.monotonic()
            while layer.is_measured:
                took_s = self._run_batch(layer)
                if layer.batches_s:
                    layer.batches_s.pop()
                layer.calls = _fitting_calls(layer.calls, took_s, self._plan.batch_s)
                if time.monotonic() - start >= self._plan.warm_up_s:
                    break

    def run_rounds(self, progress: Progress) -> None:
        """Runs the rounds: a batch of each layer, in alternating order."""
        rounds = self._plan.rounds
        progress.begin(rounds)
        for number in range(1, rounds + 1):
            progress.step(f"{self._plan.place} · round {number}/{rounds}")
            layers = self._measurable_layers()
            for layer in layers if number % 2 else layers[::-1]:
                if layer.is_measured:
                    self._run_batch(layer)
                    if layer.error:
                        progress.note(f"{layer.name}: {layer.error}")
                    else:
                        progress.sample("a call", layer.name, layer.batches_s[-1])

    def layer_cases(self) -> list[Case]:
        """One case for each layer."""
        subject = Subject(sdk=self.facts.sdk, version=self.facts.version or None)
        medians = {layer.name: statistics.median(layer.batches_s) for layer in self._in_order() if layer.batches_s}
        return [_layer_case(layer, subject, self._plan, medians) for layer in self._in_order()]

    def _start_server(self, stack: ExitStack, where: tuple[str, str, dict[str, Any]]) -> dict[str, _Layer]:
        """Starts the server and returns the socket's layer, and the handler's where the server reports it.

        Where the server can't be served, the socket's layer is unsupported, and the other layers are still measured.
        """
        by = ""
        try:
            server = stack.enter_context(Worker.start(self._plan.python, "serve", *where))
            by = str(server.ready["by"])
            description = self._worker.send_command({"cmd": "connect", "url": server.ready["url"]}, SLACK_S)
        except LabError as error:
            return {SOCKET: _Layer(SOCKET, unsupported=f"{error}{f' (served by {by})' if by else ''}")}
        self.facts.served_by = by
        return {layer["name"]: _described_layer(layer) for layer in description["layers"]}

    def _run_batch(self, layer: _Layer) -> float:
        """Runs one batch and returns its duration by this process's clock."""
        start = time.monotonic()
        command = {"cmd": "batch", "layer": layer.name, "calls": layer.calls}
        try:
            answer = self._worker.send_command(command, self._plan.batch_s * 4 + SLACK_S)
        except ProgramProblem as gone:
            # Without the worker no layer can be measured; earlier batches are kept.
            for one in self._measurable_layers():
                one.error = str(gone)
        except LabError as error:
            layer.error = str(error)
        else:
            layer.batches_s.append(answer["ns"] / 1e9 / layer.calls)
        return time.monotonic() - start

    def _in_order(self) -> list[_Layer]:
        return [self._layers[name] for name in ORDER if name in self._layers]

    def _measurable_layers(self) -> list[_Layer]:
        return [layer for layer in self._in_order() if layer.is_measured]


def _described_layer(description: dict[str, Any]) -> _Layer:
    return _Layer(description["name"], description.get("includes", ""), unsupported=description.get("unsupported"))


def _fitting_calls(calls: int, took_s: float, batch_s: float) -> int:
    """Number of calls that fill a batch, from the time of ``calls``. Grows stepwise, since the first calls are slow."""
    wanted = calls * batch_s / took_s if took_s > 0 else calls * 10
    return max(1, min(round(wanted), calls * 10, MOST_CALLS))


def _layer_case(layer: _Layer, subject: Subject, plan: LayersPlan, medians: dict[str, float]) -> Case:
    median, direct = medians.get(layer.name), medians.get(ORDER[0])
    facts = LayerFacts(
        name=layer.name, includes=layer.includes, batches=len(layer.batches_s), calls_per_batch=layer.calls
    )
    if median is not None:
        facts.low_s, facts.high_s = _quartiles(layer.batches_s)
        inner = [name for name in WITHIN[layer.name] if name in medians]
        facts.adds_s = median - medians[inner[-1]] if inner else median
        outer = next(name for name in reversed(medians))
        if layer.name == outer or layer.name in WITHIN[outer]:
            facts.share = facts.adds_s / medians[outer]
        facts.ratio = median / direct if direct else None
    return Case(
        subject=subject,
        target=plan.place,
        operation="call",
        tool=plan.tool.name,
        trials_s=layer.batches_s,
        median_s=median,
        over_direct_s=None if median is None or direct is None else median - direct,
        layer=facts,
        unsupported=layer.unsupported,
        error=layer.error,
    )


def _quartiles(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
