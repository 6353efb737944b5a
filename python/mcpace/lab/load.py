"""Load on one target: a checked conversation first, then the engine (``crates/load``), then its outcome as a Run.

The engine runs on threads of its own, outside the interpreter's lock; this side only asks it now and then how it goes.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any, Protocol

from pydantic import TypeAdapter

from mcpace import _core
from mcpace.lab import load_check, load_fold, load_thresholds, targets
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.interruption import held
from mcpace.lab.load_check import Checked
from mcpace.lab.load_plan import Closed, HttpTarget, Open, Outcome, Plan, Second, Stage, StdioTarget
from mcpace.lab.load_settings import LoadSettings, settled_session
from mcpace.lab.runs import new_run
from mcpace.lab.targets import Target
from mcpace.report.run import Run, Subject
from mcpace.report.run_load import LoadSecond

LOOK_S = 0.25
"""How often the engine is asked."""
DRAIN_S = 5.0
CHECK_LIMIT_S = 60.0
SECONDS = TypeAdapter(list[Second])


class Watcher(Protocol):
    """Told how a load goes."""

    def preparing(self, what: str) -> None:
        """Before the load."""

    def note(self, text: str) -> None:
        """Something that the user should know and that is no failure."""

    def begin(self, planned_s: float) -> None:
        """The load begins and is to take so long."""

    def second(self, second: LoadSecond) -> None:
        """Another second is over."""


def run(target: Target, settings: LoadSettings, watcher: Watcher) -> Run:
    """Puts load on ``target``. Ctrl-C ends it early: the run comes back marked partial, with what was measured.

    Raises :class:`LabError` where the target can't be reached or called, or the load can't be.
    """
    with ExitStack() as stack:
        watcher.preparing(f"checking {target.name}")
        place = _Place(stack, target, settings)
        checked, token = _conversation(place, settings)
        for note in checked.notes:
            watcher.note(note)
        names = [operation.name for operation in checked.operations]
        load_thresholds.check(settings.thresholds, names)
        plan = plan_of(place.endpoint(token), settings, checked)
        result = new_run("load", {"target": target.name, **settings.as_options(), **_settled(plan)})
        try:
            outcome = drive(plan, watcher)
        except KeyboardInterrupt:
            # Before the engine began: nothing was measured.
            result.partial = True
            return result
    subject = Subject(sdk="mcpace-load", mode=plan.revision)
    case = load_fold.case(subject, target.name, plan, outcome)
    assert case.load is not None, "a case of load"
    case.load.thresholds = [threshold.hold(case) for threshold in settings.thresholds]
    result.partial = outcome.ended == "stopped"
    result.cases = [case]
    return result


def drive(plan: Plan, watcher: Watcher) -> Outcome:
    """Runs a plan to its end; Ctrl-C ends it early, and the outcome says so.

    Raises :class:`UsageProblem` for a plan that can't be run.
    """
    try:
        engine = _core.Load(plan.to_json())
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    measured = plan.duration_s or sum(stage.duration_s for stage in plan.stages)
    watcher.begin(plan.warm_up_s + measured)
    try:
        over = False
        while not over:
            over = engine.wait(LOOK_S)
            for second in SECONDS.validate_json(engine.progress()):
                watcher.second(load_fold.second(second))
    except KeyboardInterrupt:
        engine.stop()
    except BaseException:
        engine.stop()
        raise
    with held():
        _finish(engine, plan)
        return Outcome.model_validate_json(engine.result())


def plan_of(endpoint: HttpTarget | StdioTarget, settings: LoadSettings, checked: Checked) -> Plan:
    """The engine's plan.

    Raises :class:`UsageProblem` where the revision has no such sessions.
    """
    model: Closed | Open
    if settings.rate is not None:
        model = Open(rate=settings.rate, arrivals=settings.arrivals, max_in_flight=settings.max_in_flight)
    else:
        assert settings.vus is not None, "a load is closed or open"
        model = Closed(vus=settings.vus)
    return Plan(
        target=endpoint,
        revision=checked.revision,
        accept=settings.accept,
        session=settled_session(settings.session, checked.revision),
        model=model,
        stages=[Stage(duration_s=stage.duration_s, to=stage.to) for stage in settings.stages],
        duration_s=None if settings.stages else settings.duration_s,
        warm_up_s=settings.warm_up_s,
        think_s=settings.think_s,
        max_calls=settings.max_calls,
        operations=checked.operations,
        order="sequence" if settings.replay else None,
        data={name: list(values) for name, values in settings.data.items()},
        timeout_s=settings.timeout_s,
        drain_s=min(DRAIN_S, settings.timeout_s),
        threads=settings.threads,
        cores=list(settings.cores) or None,
        seed=settings.seed,
    )


class _Place:
    """The target as the check and the engine reach it."""

    def __init__(self, stack: ExitStack, target: Target, settings: LoadSettings) -> None:
        self._target = target
        self._headers = list(settings.headers)
        self._certificate = targets.certificate(settings.extra_root) if settings.extra_root is not None else None
        self._url = target.url
        if target.profile is not None:
            scripted = _core.Target(
                target.profile, hold_s=settings.hold_s, faults=list(settings.faults), token=target.token
            )
            stack.callback(scripted.stop)
            self._url, self._certificate = scripted.url, scripted.certificate_pem
        self.name = target.name
        self.client = self._client(settings)
        stack.callback(self.client.disconnect)

    def endpoint(self, token: str | None) -> HttpTarget | StdioTarget:
        """For the engine."""
        if self._target.command:
            return StdioTarget(command=list(self._target.command), env=dict(self._target.environment))
        assert self._url is not None, "a target is a profile, a URL or a command"
        headers = list(self._headers)
        if token is not None:
            headers.append(("authorization", f"Bearer {token}"))
        return HttpTarget(url=self._url, headers=headers, ca=self._certificate)

    def _client(self, settings: LoadSettings) -> _core.Client:
        return _core.Client(
            list(self._target.command) or self._url or "",
            environment=list(self._target.environment),
            revision=settings.revision,
            auth=self._target.auth,
            token=self._target.token,
            consent="follow" if self._target.profile else "browser",
            limit_s=max(settings.timeout_s, CHECK_LIMIT_S),
            extra_root=self._certificate,
            headers=self._headers,
        )


def _conversation(place: _Place, settings: LoadSettings) -> tuple[Checked, str | None]:
    try:
        checked = load_check.check(place.client, settings, place.name)
        token = place.client.token()
    finally:
        place.client.disconnect()
    return checked, token


def _finish(engine: _core.Load, plan: Plan) -> None:
    """Waits for the engine's own end, which is bounded in time."""
    limit_s = plan.drain_s + DRAIN_S
    waited = 0.0
    while not engine.wait(LOOK_S):
        waited += LOOK_S
        if waited > limit_s:
            raise LabError("the load engine didn't end in time: this is a fault of mcpace")


def _settled(plan: Plan) -> dict[str, Any]:
    """What was settled by the conversation, for the Run's options."""
    told: dict[str, Any] = {"revision": plan.revision, "session": plan.session}
    if plan.order is None:
        told["mix"] = {operation.name: operation.weight for operation in plan.operations}
        arguments = {one.name: json.dumps(one.arguments) for one in plan.operations if one.arguments}
        if arguments:
            told["arguments"] = arguments
    return told
