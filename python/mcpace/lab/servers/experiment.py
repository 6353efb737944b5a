"""The server experiment: real SDK servers under the same load on the same machine, in interleaved rounds.

All servers are started, checked and warmed up first, and then have their rounds in turn, there and back, so that drift
of the machine hits all alike; whoever has no turn is stopped. The null server has its rounds among them: the floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from mcpace import _core
from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.adapters import toml_file
from mcpace.lab.adapters.adapter import Role
from mcpace.lab.adapters.subject import Resolved
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.environments.environment import Environment
from mcpace.lab.errors import LabError, ReleasesProblem, UsageProblem
from mcpace.lab.load import delayed_ack
from mcpace.lab.load.delayed_ack import Experiment
from mcpace.lab.load.plan import HttpTarget, Plan
from mcpace.lab.load.settings import settled_session
from mcpace.lab.machine import new_run
from mcpace.lab.processes import limits
from mcpace.lab.processes.interruption import held, interruptible
from mcpace.lab.processes.limits import Cap
from mcpace.lab.progress import Progress
from mcpace.lab.servers import fold
from mcpace.lab.servers.plan import REVISION, ServersPlan
from mcpace.lab.servers.server_under_test import (
    DRAIN_S,
    NULL_SERVER,
    ROUND_WARM_UP_S,
    TIMEOUT_S,
    Conditions,
    ServerUnderTest,
)
from mcpace.lab.servers.workloads import Workload
from mcpace.report.model.run import Case, Run, Subject
from mcpace.report.model.servers import ServerCap, ServerComparison

READY_LIMIT_S = 60.0
FLOOR = "floor"


def run(plan: ServersPlan, progress: Progress) -> Run:
    """Compares the servers. Ctrl-C ends it early: the run comes back marked partial.

    Raises :class:`LabError` for a plan that can't be carried out at all, and where what the workload needs isn't there.
    """
    with held(), ExitStack() as stack:
        with interruptible():
            subjects = _resolved(plan, progress)
            conditions = _conditions(plan, stack)
        result = new_run("servers", plan.as_options())
        if _core.DEBUG:
            progress.note(
                "mcpace is a debug build: the floor, the generator's limit and mcpace's own rows mean nothing"
            )
        result.servers = _common(conditions, plan)
        bench = _Bench([_label(one) for one in subjects], conditions)
        stack.callback(bench.close)
        try:
            with interruptible():
                bench.build(subjects, result, progress)
                with limits.kept_off(conditions.cap):
                    bench.open(progress)
                    bench.rounds(plan.rounds, progress)
                    bench.experiments(progress)
        except KeyboardInterrupt:
            result.partial = True
        result.cases = bench.cases()
        result.servers.floor = fold.floor(bench.floor, bench.plan)
    return result


class _Bench:
    """All servers of a comparison, and the floor."""

    def __init__(self, subjects: Sequence[Subject], conditions: Conditions) -> None:
        self.conditions = conditions
        self.servers = [ServerUnderTest(subject, conditions) for subject in subjects]
        self.floor = ServerUnderTest(Subject(sdk=FLOOR, mode="json"), conditions, NULL_SERVER, checked=False)
        self.plan = _plan(conditions)
        self._experiments: dict[int, Experiment] = {}

    def build(self, subjects: Sequence[Resolved], result: Run, progress: Progress) -> None:
        """Finds or builds every environment, before any server runs: compiling would take time from it."""
        for server, resolved in zip(self.servers, subjects, strict=True):
            progress.preparing(server.subject.label())
            try:
                environment = release_environment.ensure(
                    resolved.adapter, resolved.version, progress.preparing, Role.SERVER
                )
            except LabError as error:
                server.error = str(error)
                progress.note(f"{server.subject.label()}: {error}")
                continue
            _furnish(server, resolved, environment)
            result.versions[server.subject.label()] = environment.versions

    def open(self, progress: Progress) -> None:
        """Starts, checks and warms up each server."""
        for server in [*self.servers, self.floor]:
            if server.command and not server.error:
                progress.preparing(f"{server.subject.label()}: starting, checking, warming up")
                server.open()
                if server.error:
                    progress.note(f"{server.subject.label()}: {server.error}")

    def rounds(self, count: int, progress: Progress) -> None:
        """A round at a time, each server in turn, there and back."""
        standing = [server for server in [*self.servers, self.floor] if server.is_open]
        if standing == [self.floor]:
            return  # nothing to compare with it
        progress.begin(count * len(standing))
        for number in range(1, count + 1):
            for server in standing if number % 2 else standing[::-1]:
                if server.is_open:
                    progress.step(f"round {number}/{count} · {server.subject.label()}")
                    rounds = len(server.rounds)
                    server.round(number)
                    if server.error:
                        progress.note(f"{server.subject.label()}: {server.error}")
                    for one in server.rounds[rounds:]:
                        rate = fold.throughput(one.outcome)
                        progress.sample("calls a second", server.subject.label(), rate, "per second")

    def experiments(self, progress: Progress) -> None:
        """Confirms or drops what results made suspected."""
        for index, server in enumerate(self.servers):
            seen = server.seen()
            if seen is not None and delayed_ack.suspected(seen):
                progress.preparing(f"{server.subject.label()}: repeating with TCP_QUICKACK")
                if (made := server.experiment(progress)) is not None:
                    self._experiments[index] = made

    def cases(self) -> list[Case]:
        """Every server's, the first with none to be compared with."""
        cases = []
        for index, server in enumerate(self.servers):
            case = fold.case(server, f"workload:{self.conditions.workload.name}", self.plan)
            seen = server.seen()
            if seen is not None:
                finding = delayed_ack.judged(seen, self._experiments.get(index))
                case.findings = [finding] if finding else []
            cases.append(case)
        for case in cases[1:]:
            assert case.server is not None, "every case has its server's facts"
            case.server.ratio = fold.ratio(case, cases[0])
        return cases

    def close(self) -> None:
        """Ends all."""
        with ExitStack() as stack:
            for server in [*self.servers, self.floor]:
                stack.callback(server.close)


def _conditions(plan: ServersPlan, stack: ExitStack) -> Conditions:
    """What all servers have in common. What stands behind them is running then, until ``stack`` is closed."""
    model, round_s = plan.model(), plan.round_s()
    session = settled_session(plan.session, plan.revision or REVISION)
    cap = limits.settle(_cpus(plan.cpus), limits.memory(plan.memory))
    with limits.kept_off(cap):
        workload = stack.enter_context(Workload(plan.workload))
    return Conditions(
        workload,
        cap,
        model,
        plan.revisions(),
        session,
        plan.state,
        round_s,
        plan.warm_up_s,
        READY_LIMIT_S,
        plan.server_timing,
    )


def _resolved(plan: ServersPlan, progress: Progress) -> list[Resolved]:
    plan.check()
    subjects = [_resolve(text, progress) for text in plan.subjects]
    for index, one in enumerate(subjects):
        if one in subjects[:index]:
            raise UsageProblem(f"{plan.subjects[index]} is named twice; each server stands for one row")
    return subjects


def _resolve(text: str, progress: Progress) -> Resolved:
    """What the user typed, to one server. A release whose environment stands needs no package index."""
    try:
        return adapter_subject.resolve(text, progress.preparing, Role.SERVER)
    except ReleasesProblem:
        subject = adapter_subject.parse_subject(text, toml_file.load_all(), Role.SERVER)
        version = str(subject.selection)
        if release_environment.find_ready(subject.adapter, version, Role.SERVER) is None:
            raise
        return Resolved(subject.adapter, version, subject.mode or next(iter(subject.adapter.modes(Role.SERVER)), None))


def _label(resolved: Resolved) -> Subject:
    return Subject(sdk=resolved.adapter.name, version=resolved.version, mode=resolved.mode)


def _furnish(server: ServerUnderTest, resolved: Resolved, environment: Environment) -> None:
    server.command, server.environment = resolved.adapter.server_command(environment), environment


def _cpus(asked: float | None) -> float:
    """Two unless said, as most published comparisons give; one where there is no more."""
    if asked is not None:
        return asked
    return float(min(2, len(limits.allowed())))


def _plan(conditions: Conditions) -> Plan:
    """What was run, for the cases: each round's own plan has its server's URL and its own seed."""
    calls = conditions.workload.load()
    return Plan(
        target=HttpTarget(url=""),
        revision=conditions.revisions[0],
        session=conditions.session,
        model=conditions.model,
        duration_s=conditions.round_s,
        warm_up_s=ROUND_WARM_UP_S,
        operations=calls.operations,
        data=calls.data,
        timeout_s=TIMEOUT_S,
        drain_s=DRAIN_S,
    )


def _common(conditions: Conditions, plan: ServersPlan) -> ServerComparison:
    return ServerComparison(
        workload=conditions.workload.name,
        operations={one.name: one.arguments or {} for one in conditions.workload.load().operations},
        model={"kind": conditions.model.kind, **vars(conditions.model)},
        revision=conditions.revisions[0],
        session=conditions.session,
        state=conditions.state,
        rounds=plan.rounds,
        round_s=conditions.round_s,
        round_warm_up_s=ROUND_WARM_UP_S,
        cap=_cap(conditions.cap),
        behind=conditions.workload.behind(),
    )


def _cap(cap: Cap) -> ServerCap:
    return ServerCap(
        by=cap.by,
        cpus=cap.cpus,
        memory_bytes=cap.memory_bytes,
        memory_limited=cap.limits_memory,
        cores=list(cap.cores),
        load_cores=list(cap.others),
    )
