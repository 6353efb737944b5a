"""Load on one target: the check of the target, then the engine (``crates/load``), then its outcome as a Run.

Design constraint: Modules needed before the first request must import quickly. The Run and the modules that build it
are imported between that request and the load.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.load import check, thresholds
from mcpace.lab.load.check import Checked
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Open, Stage, StdioTarget
from mcpace.lab.load.settings import LoadSettings, resolve_session
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.targets import Target

if TYPE_CHECKING:
    from mcpace.lab.load.layers import LayerSampler
    from mcpace.report.model.load import LoadSecond
    from mcpace.report.model.run import Run

DRAIN_S = 5.0
"""Seconds that calls in flight get at the end, unless their own limit is shorter."""
CHECK_LIMIT_S = 60.0
"""Time limit of each request of the check, unless a call's limit is longer."""


class Watcher(Protocol):
    """Receiver of a load's progress."""

    def preparing(self, what: str) -> None:
        """A step before the load begins."""

    def note(self, text: str) -> None:
        """Reports something that the user should know and that is not a failure."""

    def begin(self, planned_s: float) -> None:
        """The load begins, with its planned duration."""

    def second(self, second: LoadSecond) -> None:
        """Another second of the load has ended."""


def run_load(target: Target, settings: LoadSettings, watcher: Watcher) -> Run:
    """Puts load on ``target``. Ctrl-C ends it early; the run is then marked partial and has the measurements so far.

    Raises :class:`LabError` where the target can't be reached or called, or the load can't be run.
    """
    settings = _with_own_tool(target, settings)
    with defer_interrupt():
        result, plan = _run_at_target(target, settings, watcher)
        if (settings.inside or settings.pid is not None) and result.cases and not result.partial:
            # The measurement itself stays free of instrumentation.
            from mcpace.lab.load.inside_load import look_inside

            try:
                result.cases[0].inside_sums = look_inside(target, settings, plan, result.cases[0], watcher)
            except KeyboardInterrupt:
                result.partial = True
    return result


def _run_at_target(target: Target, settings: LoadSettings, watcher: Watcher) -> tuple[Run, LoadPlan]:
    with ExitStack() as stack:
        with allow_interrupt():
            started = stack.enter_context(start_target(target, watcher, extra_root=settings.extra_root))
            watcher.preparing(f"checking {target.name}")
            place = Place(stack, started, settings)
            checked, token = check_conversation(place, settings)
            for note in checked.notes:
                watcher.note(note)
            thresholds.check_thresholds(settings.thresholds, [operation.name for operation in checked.operations])
        make_layer_client = partial(place.layer_client, settings, token) if settings.server_timing else None
        plan = plan_of(place.plan_target(token), settings, checked)
        result = _run_plan(target, settings, plan, watcher, make_layer_client)
        _count_results(result, checked)
        return result, plan


def _count_results(result: Run, checked: Checked) -> None:
    """Adds the tokens of the checked results. They are counted after the load, because the count takes time."""
    from mcpace.lab.token_findings import add_result_findings
    from mcpace.lab.tokens import result_tokens

    for case in result.cases:
        for operation in (case.by_tool or {}).values():
            if operation.name in checked.results:
                operation.result_tokens = result_tokens(checked.results[operation.name])
        add_result_findings([case], case.tokens_by_tool)


def _with_own_tool(target: Target, settings: LoadSettings) -> LoadSettings:
    """Adds the default arguments of a profile's own tool, unless the user gives others."""
    own = target.tool
    if target.profile is None or own is None or own.name not in dict(settings.mix):
        return settings
    return replace(settings, arguments={own.name: own.arguments, **settings.arguments})


def _run_plan(
    target: Target,
    settings: LoadSettings,
    plan: LoadPlan,
    watcher: Watcher,
    make_layer_client: Callable[[], _core.Client] | None,
) -> Run:
    from mcpace.lab.clients.trials_to_cases import mean_ledger
    from mcpace.lab.load import gate, outcome_to_case
    from mcpace.lab.load.engine import run_engine
    from mcpace.lab.machine import new_run
    from mcpace.report.model.run import Subject

    result = new_run("load", {"target": target.name, **settings.as_options(), **_resolved_options(plan)})
    with ExitStack() as stack:
        sampler = (
            stack.enter_context(_layer_sampler(make_layer_client, plan)) if make_layer_client is not None else None
        )
        if settings.workers:
            from mcpace.lab.load.workers.run_workers import run_workers

            outcome, workers = run_workers(plan, settings.workers, watcher)
        else:
            outcome, workers = run_engine(plan, watcher), []
    result.partial = outcome.ended == "stopped"
    if not result.partial or outcome.seconds or any(one.count for one in outcome.operations):
        case = outcome_to_case.load_case(Subject(sdk="mcpace-load", mode=plan.revision), target.name, plan, outcome)
        assert case.load is not None, "a case of load"
        case.load.workers = workers
        case.load.thresholds = [gate.check_threshold(threshold, case) for threshold in settings.thresholds]
        if sampler is not None:
            layers = sampler.ledger_sum()
            case.ledger_s, case.load.beside = mean_ledger([layers]), layers["calls"]
        result.cases = [case]
    return result


def _layer_sampler(make_layer_client: Callable[[], _core.Client], plan: LoadPlan) -> LayerSampler:
    from mcpace.lab.load.layers import LayerSampler

    planned_s = plan.warm_up_s + (plan.duration_s or sum(stage.duration_s for stage in plan.stages))
    return LayerSampler(make_layer_client, plan.operations, plan.data, planned_s)


def plan_of(endpoint: HttpTarget | StdioTarget, settings: LoadSettings, checked: Checked) -> LoadPlan:
    """Builds the engine's plan.

    Raises :class:`UsageProblem` where the revision doesn't have the requested sessions.
    """
    model: Closed | Open
    if settings.rate is not None:
        model = Open(rate=settings.rate, arrivals=settings.arrivals, max_in_flight=settings.max_in_flight)
    else:
        assert settings.vus is not None, "a load is closed or open"
        model = Closed(vus=settings.vus)
    return LoadPlan(
        target=endpoint,
        revision=checked.revision,
        accept=settings.accept,
        session=resolve_session(settings.session, checked.revision),
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


class Place:
    """Access to the target for the check and the engine: addresses, certificates, clients."""

    def __init__(self, stack: ExitStack, target: Target, settings: LoadSettings) -> None:
        self._target = target
        self._headers = list(settings.headers)
        self._certificate = targets.read_certificate(settings.extra_root) if settings.extra_root is not None else None
        self._url = target.url
        if target.profile is not None:
            scripted = _core.Target(
                target.profile, hold_s=settings.hold_s, faults=list(settings.faults), token=target.token
            )
            stack.callback(scripted.stop)
            self._url, self._certificate = scripted.url, scripted.certificate_pem
        self.name = target.name
        self.client = self._open_client(settings)
        stack.callback(self.client.disconnect)

    def plan_target(self, token: str | None) -> HttpTarget | StdioTarget:
        """Target of the engine's plan."""
        if self._target.command:
            return StdioTarget(command=list(self._target.command), env=dict(self._target.environment))
        assert self._url is not None, "a target is a profile, a URL or a command"
        headers = list(self._headers)
        if token is not None:
            headers.append(("authorization", f"Bearer {token}"))
        return HttpTarget(url=self._url, headers=headers, ca=self._certificate)

    def layer_client(self, settings: LoadSettings, token: str | None) -> _core.Client:
        """A client that requests the server's layer timings, with the access token of the load."""
        auth = "bearer" if token is not None else "none"
        return self._open_client(settings, auth=auth, token=token, limit_s=settings.timeout_s, server_timing=True)

    @property
    def has_automatic_consent(self) -> bool:
        """Whether OAuth consent is given automatically."""
        return self._target.auth == "oauth" and self._target.profile is not None

    @property
    def is_profile(self) -> bool:
        """Whether the target is one of mcpace's own profiles."""
        return self._target.profile is not None

    def call_client(
        self, settings: LoadSettings, token: str | None, *, standalone_get: bool, url: str | None = None
    ) -> _core.Client:
        """A client for single calls, with or without the server's standalone stream.

        Without a token, the client authorizes itself. ``url`` replaces the address of the server.
        """
        own: dict[str, Any] = {} if token is None else {"auth": "bearer", "token": token}
        return self._open_client(settings, url, limit_s=settings.timeout_s, standalone_get=standalone_get, **own)

    def _open_client(self, settings: LoadSettings, url: str | None = None, **others: Any) -> _core.Client:
        options: dict[str, Any] = {
            "environment": list(self._target.environment),
            "revision": settings.revision,
            "auth": self._target.auth,
            "token": self._target.token,
            "consent": "follow" if self._target.profile else "browser",
            "limit_s": max(settings.timeout_s, CHECK_LIMIT_S),
            "extra_root": self._certificate,
            "headers": self._headers,
        }
        return _core.Client(list(self._target.command) or url or self._url or "", **options | others)


def check_conversation(place: Place, settings: LoadSettings, *, careful: bool = False) -> tuple[Checked, str | None]:
    """Checks the target and returns the results and the access token; ``careful`` as in :func:`check.check_target`.

    Raises :class:`LabError` where the target can't be reached or called.
    """
    try:
        checked = check.check_target(place.client, settings, place.name, careful=careful)
        token = place.client.token()
    finally:
        place.client.disconnect()
    return checked, token


def _resolved_options(plan: LoadPlan) -> dict[str, Any]:
    """Options of the Run that the check determined."""
    options: dict[str, Any] = {"revision": plan.revision, "session": plan.session}
    if plan.order is None:
        options["mix"] = {operation.name: operation.weight for operation in plan.operations}
        arguments = {one.name: json.dumps(one.arguments) for one in plan.operations if one.arguments}
        if arguments:
            options["arguments"] = arguments
    return options
