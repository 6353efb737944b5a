"""Effective time limits of clients: after which time a client gives up, for each layer of a call.

Method: a client calls the tool ``answer`` of profile ``limits``, which answers after the longest time that is tried. A
client that gives up earlier shows an upper bound of its limit. Answers at shorter times, chosen by bisection between
the last answered time and that bound, show a lower bound, until the two are at most a tenth apart. A client without a
limit takes the longest answer.

The adapters' programs use the SDK's own time-outs (``own_limits``). All layers of all clients wait at the same time,
since waiting takes no processor time; each has a program of its own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from mcpace import _core
from mcpace.lab.clients.client_program import Answer, ClientProgram
from mcpace.lab.clients.run_clients import Ready, note_environment, prepare, resolve
from mcpace.lab.defaults import LIMITS_LONGEST_S
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.machine import new_run
from mcpace.lab.progress import Progress
from mcpace.report.model.limits import ClientLimits, LimitFacts, LimitLayer
from mcpace.report.model.run import Run

MOST_S = 540.0
"""Longest time that can be tried: the profile answers within ten minutes."""
TOOL = "answer"
ARGUMENTS: dict[LimitLayer, dict[str, str]] = {
    "head": {"head": "late"},
    "idle": {"sends": "nothing"},
    "tool": {"sends": "comments"},
    "progress": {"sends": "progress"},
    "body": {"sends": "bytes"},
}
"""How the tool answers, by layer. ``connect`` has a port that accepts no connection instead."""
LAYERS: tuple[LimitLayer, ...] = ("connect", *ARGUMENTS)
PERIOD_MS = 500
"""Time between two comments, notifications or parts of a body."""
SHORTEST_S = 0.2
"""A client that fails earlier has no time-out that ended it."""
CLOSE_TO = 0.9
"""Bisection ends where the longest answered time is this share of the time at which the client gave up."""
MOST_PROBES = 6
GRACE_S = 10.0
"""The program's own limit lies this much above the longest time."""


@dataclass(frozen=True)
class LimitsPlan:
    """Plan of the experiment."""

    subjects: tuple[str, ...]
    longest_s: float = LIMITS_LONGEST_S


def run_limits(plan: LimitsPlan, progress: Progress) -> Run:
    """Finds the limits of each release. Ctrl-C ends the experiment; the run then has the finished layers.

    Raises :class:`LabError` for a plan that can't be carried out.
    """
    if not 1.0 <= plan.longest_s <= MOST_S:
        raise UsageProblem(f"--timeout is the longest time to try: from 1s to {MOST_S:.0f}s")
    run = new_run("limits", {"subjects": list(plan.subjects), "time_limit_s": plan.longest_s})
    resolved = [resolve(text, progress) for text in plan.subjects]
    for index, release in enumerate(resolved):
        if release in resolved[:index]:
            raise UsageProblem(f"{plan.subjects[index]} is named twice; each release stands for one row")
    try:
        ready = [prepare(subject, progress) for subject in resolved]
        for item in ready:
            if item.environment is not None:
                note_environment(run, item.subject, item.environment)
        progress.begin(len(ready) * len(LAYERS))
        with ExitStack() as stack:
            places, waiting = Places(stack), WaitingPrograms()
            pool = ThreadPoolExecutor(max_workers=len(ready) * len(LAYERS), thread_name_prefix="mcpace-limits")
            stack.callback(pool.shutdown, cancel_futures=True)
            stack.callback(waiting.stop)
            asked = []
            for item in ready:
                client = ClientLimits(subject=item.subject.label(), error=item.error or item.unsupported or "")
                run.client_limits.append(client)
                for layer in LAYERS if item.command else ():
                    probe = LayerProbe(item, places, layer, plan.longest_s, waiting)
                    asked.append((client, layer, pool.submit(find_limit, probe)))
            for client, layer, found in asked:
                progress.step(f"{client.subject} · {layer}")
                client.layers.append(found.result())
    except KeyboardInterrupt:
        run.partial = True
    for client in run.client_limits:
        client.layers.sort(key=lambda facts: LAYERS.index(facts.layer))
    return run


class Places:
    """The servers that the clients connect to."""

    def __init__(self, stack: ExitStack) -> None:
        events, whole = _core.Target("limits", response="sse"), _core.Target("limits", response="json")
        stack.callback(events.stop)
        stack.callback(whole.stop)
        port = stack.enter_context(_full_port())
        self._events, self._whole, self._nowhere = events.url, whole.url, f"http://127.0.0.1:{port}/mcp"

    def url(self, layer: LimitLayer) -> str:
        """URL for the layer. A body in parts is JSON; all other answers are events."""
        if layer == "connect":
            return self._nowhere
        return self._whole if layer == "body" else self._events


@contextmanager
def _full_port() -> Iterator[int]:
    """A port of loopback whose queue of connections is full, so that the kernel answers no further one."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        # The queue takes one more than its size; connections past that stay unanswered.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield address[1]


class WaitingPrograms:
    """The programs that wait at this moment. An interruption ends them, and so the wait of their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[ClientProgram] = set()
        self._is_stopped = False

    @contextmanager
    def start(self, ready: Ready) -> Iterator[ClientProgram]:
        """Starts a client program for the block.

        Raises :class:`LabError` where it can't be started, or the experiment was stopped.
        """
        if self._is_stopped:
            raise LabError("interrupted")
        with ClientProgram.start(ready.command, environment=ready.environment) as program:
            with self._lock:
                self._running.add(program)
            try:
                if self._is_stopped:
                    raise LabError("interrupted")
                yield program
            finally:
                with self._lock:
                    self._running.discard(program)

    def stop(self) -> None:
        """Ends all programs; no further one starts."""
        self._is_stopped = True
        with self._lock:
            running = tuple(self._running)
        for program in running:
            program.close(0.0)


@dataclass(frozen=True)
class LayerProbe:
    """One layer of one client."""

    ready: Ready
    places: Places
    layer: LimitLayer
    longest_s: float
    waiting: WaitingPrograms

    def answer_after(self, seconds: float) -> Answer:
        """Connects with a new program, and calls the tool, which answers after the time.

        Raises :class:`LabError` where the program fails.
        """
        limit_s = self.longest_s + GRACE_S
        # The driver's limit of a connect is the longest time itself: nothing answers there.
        connect_s = self.longest_s if self.layer == "connect" else limit_s
        connect: dict[str, Any] = {"cmd": "connect", "url": self.places.url(self.layer), "auth": {"kind": "none"}}
        arguments = {"after_ms": round(seconds * 1_000), "every_ms": PERIOD_MS, **ARGUMENTS.get(self.layer, {})}
        call: dict[str, Any] = {
            "cmd": "call_tool",
            "name": TOOL,
            "arguments": arguments,
            "progress": self.layer == "progress",
        }
        with self.waiting.start(self.ready) as program:
            connect |= {"mode": self.ready.subject.mode, "timeout_s": connect_s, "own_limits": True}
            answer = program.send_command(connect, timeout_s=limit_s + GRACE_S)
            if self.layer == "connect" or not answer.ok:
                return answer
            call |= {"timeout_s": limit_s, "own_limits": True}
            return program.send_command(call, timeout_s=limit_s + GRACE_S)


def find_limit(probe: LayerProbe) -> LimitFacts:
    """Finds the limit of one layer."""
    facts = LimitFacts(layer=probe.layer, tried_s=probe.longest_s)
    try:
        _narrow_limit(probe, facts)
    except LabError as problem:
        facts.unknown = str(problem)
    return facts


def _narrow_limit(probe: LayerProbe, facts: LimitFacts) -> None:
    if probe.layer == "progress":
        heard = probe.answer_after(1.5 * PERIOD_MS / 1_000)
        if not heard.result.get("progress"):
            facts.unknown = "the adapter asks for no progress" if heard.ok else _reason(heard)
            return
    time_s = probe.longest_s
    for _ in range(MOST_PROBES):
        answer = probe.answer_after(time_s)
        lasted_s = (answer.end_ns - answer.start_ns) / 1e9
        if answer.ok and not answer.result.get("is_error"):
            facts.answered_s = time_s
        elif answer.ok or answer.error_kind == "unsupported" or lasted_s < SHORTEST_S:
            facts.unknown = _reason(answer)
            return
        elif lasted_s >= probe.longest_s:
            return
        elif facts.limit_s is None or lasted_s < facts.limit_s:
            facts.limit_s, facts.message = lasted_s, _reason(answer)
        if facts.limit_s is None or probe.layer == "connect":
            return
        answered_s = facts.answered_s or 0.0
        if answered_s >= CLOSE_TO * facts.limit_s:
            return
        # The first answer is tried right below the limit, where a fixed time-out has it; then in the middle.
        time_s = 0.95 * facts.limit_s if answered_s == 0.0 and time_s == probe.longest_s else _middle(answered_s, facts)


def _middle(answered_s: float, facts: LimitFacts) -> float:
    assert facts.limit_s is not None, "there is an upper bound once a client gave up"
    return (answered_s + facts.limit_s) / 2


def _reason(answer: Answer) -> str:
    return str(answer.error_message or answer.result.get("text") or "no reason given")[:300]
