"""Observation of a gateway from both sides: its own requests to the server, and the passage of a stream."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.clients.measure import Session
from mcpace.lab.clients.plan import Settings
from mcpace.lab.errors import LabError, Unreachable
from mcpace.lab.gateway import record_process
from mcpace.lab.gateway.plan import GatewayPlan, with_direct
from mcpace.lab.gateway.traffic import Traffic, request_changes
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.targets import Target
from mcpace.report.model.gateway import GatewayChange, GatewayFacts, GatewayTime
from mcpace.report.model.run import Case

SESSIONS = 3
CALLS = 5
"""Sessions of the client, and its lists and calls in each."""
PROBE = (("x-mcpace-probe", "passed"), ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
"""Headers that no gateway knows, and that each should pass on: one of an application, and that of a trace."""
BEHIND_ONLY = frozenset({"amplification", "serial-fan-out", "buffered-stream"})
"""Findings that need a recording behind the gateway."""
NANOS = 1e9
STREAM_MS, PERIOD_MS = 1_000, 200
"""Time of the streamed answer, and between two notifications of its progress."""
STREAM_LIMIT_S = 15.0
HELD_SHARE = 0.5
"""A stream is held back if its notifications come in less than this share of the time in which they are sent."""
STREAM_TRIES = 3
"""A busy machine can delay the client, so that notifications are read together. Held back is a stream that is so in
each try."""


def observe_requests(
    plan: GatewayPlan, direct: Target, settings: Settings, progress: Progress, cases: list[Case], facts: GatewayFacts
) -> None:
    """Records both sides of the gateway during a few sessions, and adds to ``facts`` what differs between them.

    Findings that only this shows are added to ``cases``. Raises :class:`LabError` where the gateway doesn't work.
    """
    settings = replace(settings, trials=SESSIONS, calls=CALLS, keep_recordings=None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcpace-gateway-")))
        recorder = _recorder(direct, plan.extra_root) if direct.url is not None else None
        if recorder is not None:
            stack.callback(recorder.stop)
        place: str | list[str] = (
            recorder.url
            if recorder is not None
            else [sys.executable, record_process.__file__, str(folder), *direct.command]
        )
        with start_target(with_direct(plan.through, place), progress, extra_root=plan.extra_root) as through:
            through = replace(through, name=plan.through.name, tool=direct.tool)
            if through.url is not None:
                through = replace(through, headers=(*through.headers, *PROBE))
            session = Session(stack, through, settings, plan.revision, server_timing=False, extra_root=plan.extra_root)
            start_ns = time.perf_counter_ns()
            for number in range(1, SESSIONS + 1):
                if not session.given_up:
                    session.run_round(progress, f"{plan.through.name} · observed · round {number}/{SESSIONS}")
            session.end_sampling()
        # The gateway has ended, and with it the server processes that it started.
        behind = recorder.stop() if recorder is not None else _merged(folder)
        session.behind = behind
        observed = session.cases(progress)
        if not session.has_results:
            raise Unreachable(session.facts.error or "no session could be opened")
        client = Traffic.of(session.recording().events(), "back")
        if recorder is not None:
            gateway = Traffic.of(behind.events(), "front")
            facts.changes += request_changes(client, gateway, SESSIONS, start_ns)
            facts.inside = _time_inside(session, gateway)
        else:
            facts.changes += _process_changes(len(list(folder.iterdir())))
        _add_findings(observed, cases)


def try_stream(plan: GatewayPlan, direct: Target, progress: Progress, facts: GatewayFacts) -> None:
    """Lets a scripted server behind the gateway send progress, and adds to ``facts`` what becomes of it.

    Raises :class:`LabError` where that can't be tried.
    """
    if direct.url is None:
        facts.stream_not_tried = "the gateway starts the server over stdio"
        return
    scripted = _core.Target("limits", response="sse")
    try:
        base = _call_with_progress(Target(name="the scripted server", url=scripted.url), plan)
        with start_target(with_direct(plan.through, scripted.url), progress, extra_root=plan.extra_root) as through:
            for _ in range(STREAM_TRIES):
                found = _call_with_progress(through, plan)
                if found.failure or not found.is_held_back:
                    break
    finally:
        scripted.stop()
    if base.failure or not base.notified_s:
        raise LabError(f"the scripted server sent no progress: {base.failure or 'none came'}")
    before, after = (f"{len(one.notified_s)} in {one.spread_s:.2f} s" for one in (base, found))
    if found.failure:
        facts.changes.append(GatewayChange(code="stream-failed", direct=before, through=found.failure))
    elif not found.notified_s:
        facts.changes.append(GatewayChange(code="stream-lost", direct=before, through="none"))
    elif found.is_held_back:
        facts.changes.append(GatewayChange(code="stream-held-back", direct=before, through=after))


def _recorder(direct: Target, extra_root: Path | None) -> _core.Recorder:
    assert direct.url is not None, "only HTTP has a recorder in front"
    certificate = targets.read_certificate(extra_root) if extra_root is not None else None
    return _core.Recorder(direct.url, extra_root=certificate)


def _merged(folder: Path) -> _core.Recording:
    files = sorted(str(path) for path in folder.iterdir())
    if not files:
        raise LabError("the gateway started no process of the server")
    return _core.Recording.merge(files)


def _time_inside(session: Session, gateway: Traffic) -> GatewayTime | None:
    """Divides the time of the later calls by the requests that the gateway made meanwhile."""
    explained = session.facts.explained
    assert explained is not None, "the session has made its cases"
    calls = [
        window
        for trial in session.facts.trials
        if trial.operation == "call" and not trial.failure
        for call in trial.calls[1:]
        if (window := explained.window(call)) is not None
    ]
    if not calls:
        return None
    spans = [gateway.busy_ns(start, end) for start, end in calls]
    return GatewayTime(
        calls=len(calls),
        call_s=sum(end - start for start, end in calls) / len(calls) / NANOS,
        server_s=sum(busy for busy, _ in spans) / len(calls) / NANOS,
        requests=sum(count for _, count in spans) / len(calls),
    )


def _process_changes(processes: int) -> list[GatewayChange]:
    if processes == SESSIONS:
        return []
    return [GatewayChange(code="processes", direct=str(SESSIONS), through=str(processes))]


def _add_findings(observed: Iterable[Case], cases: list[Case]) -> None:
    places = {case.operation: case for case in cases}
    for case in observed:
        if case.operation in places:
            places[case.operation].findings += [one for one in case.findings if one.code in BEHIND_ONLY]


@dataclass
class _Streamed:
    """Arrival of progress at the client."""

    notified_s: list[float]
    failure: str = ""

    @property
    def spread_s(self) -> float:
        """Seconds from the first notification to the last."""
        return self.notified_s[-1] - self.notified_s[0] if self.notified_s else 0.0

    @property
    def is_held_back(self) -> bool:
        """Whether the notifications came faster than the server sent them."""
        sent_s = (len(self.notified_s) - 1) * PERIOD_MS / 1_000
        return len(self.notified_s) > 1 and self.spread_s < HELD_SHARE * sent_s


def _call_with_progress(target: Target, plan: GatewayPlan) -> _Streamed:
    settings: dict[str, object] = {"cache": False, "call_time_s": STREAM_LIMIT_S}
    settings |= {"mode": plan.revision} if plan.revision else {}
    if target.url is not None:
        settings["headers"] = [list(header) for header in target.headers]
        settings |= {"bearer": target.token} if target.token else {}
        if plan.extra_root is not None:
            settings["extra_root"] = targets.read_certificate(plan.extra_root)
    found = _Streamed([])
    try:
        caller = _core.Caller.connect(
            target.url or list(target.command),
            json.dumps(settings).encode(),
            _refuse_question,
            in_loop=False,
            environment=list(target.environment) if target.command else None,
        ).wait()
    except (_core.CallProblem, _core.UsageProblem) as problem:
        return replace(found, failure=str(problem.args[1] if len(problem.args) > 1 else problem))
    try:
        arguments = json.dumps({"after_ms": STREAM_MS, "sends": "progress", "every_ms": PERIOD_MS})
        extras = {"progress": lambda *_: found.notified_s.append(time.monotonic())}
        caller.call_tool("answer", arguments, extras).wait()
    except _core.CallProblem as problem:
        found.failure = str(problem.args[1])
    finally:
        caller.close().wait()
    return found


def _refuse_question(question: _core.Question) -> None:
    question.refuse(-32601, "this client answers no questions")
