"""Comparison of servers: real SDK servers under equal load on one machine, in interleaved rounds.

All servers are started, checked and warmed up first. Their rounds then alternate, in forward and reverse order, so that
drift of the machine affects all servers alike. Servers that aren't under load are stopped. The null server has rounds
too and gives the floor.
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
from mcpace.lab.inside.evidence import FAILURES, InsideEvidence
from mcpace.lab.load import delayed_ack
from mcpace.lab.load.delayed_ack import Experiment
from mcpace.lab.load.plan import HttpTarget, LoadPlan
from mcpace.lab.load.settings import resolve_session
from mcpace.lab.machine import new_run
from mcpace.lab.processes import limits
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt
from mcpace.lab.processes.limits import Cap
from mcpace.lab.progress import Progress
from mcpace.lab.servers import rounds_to_case
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
from mcpace.system.processors import usable_cores

READY_LIMIT_S = 60.0
FLOOR = "floor"


def run_servers(plan: ServersPlan, progress: Progress) -> Run:
    """Compares the servers. Ctrl-C ends the comparison early; the run is then marked partial.

    Raises :class:`LabError` for a plan that can't be carried out, and where a program that the workload needs is
    missing.
    """
    with defer_interrupt(), ExitStack() as stack:
        with allow_interrupt():
            subjects = _resolve_subjects(plan, progress)
            conditions = _common_conditions(plan, stack)
        result = new_run("servers", plan.as_options())
        if _core.DEBUG:
            progress.note(
                "mcpace is a debug build: the floor, the generator's limit and mcpace's own rows mean nothing"
            )
        result.servers = _comparison_facts(conditions, plan)
        bench = _Bench([_server_subject(one) for one in subjects], conditions)
        stack.callback(bench.close)
        try:
            with allow_interrupt():
                bench.build_environments(subjects, result, progress)
                with limits.avoid_server_cores(conditions.cap):
                    bench.start_servers(progress)
                    bench.run_rounds(plan.rounds, progress)
                    bench.run_experiments(progress)
        except KeyboardInterrupt:
            result.partial = True
        result.cases = bench.server_cases()
        if plan.inside and not result.partial:
            try:
                with allow_interrupt(), limits.avoid_server_cores(conditions.cap):
                    bench.look_inside(result.cases, progress)
            except KeyboardInterrupt:
                result.partial = True
        result.servers.floor = rounds_to_case.null_floor(bench.floor, bench.plan)
    return result


class _Bench:
    """All servers of a comparison, including the null server."""

    def __init__(self, subjects: Sequence[Subject], conditions: Conditions) -> None:
        self.conditions = conditions
        self.servers = [ServerUnderTest(subject, conditions) for subject in subjects]
        self.floor = ServerUnderTest(Subject(sdk=FLOOR, mode="json"), conditions, NULL_SERVER, checked=False)
        self.plan = _described_plan(conditions)
        self._experiments: dict[int, Experiment] = {}

    def build_environments(self, subjects: Sequence[Resolved], result: Run, progress: Progress) -> None:
        """Finds or builds every environment before any server runs, since compiling would take processor time."""
        for server, resolved in zip(self.servers, subjects, strict=True):
            progress.preparing(server.subject.label())
            try:
                environment = release_environment.ensure_environment(
                    resolved.adapter,
                    resolved.version,
                    progress.preparing,
                    Role.SERVER,
                    self.conditions.workload.name,
                )
            except LabError as error:
                server.error = str(error)
                progress.note(f"{server.subject.label()}: {error}")
                continue
            _set_environment(server, resolved, environment)
            result.versions[server.subject.label()] = environment.versions

    def start_servers(self, progress: Progress) -> None:
        """Starts, checks and warms up each server."""
        for server in [*self.servers, self.floor]:
            if server.command and not server.error:
                progress.preparing(f"{server.subject.label()}: starting, checking, warming up")
                server.start_server()
                if server.error:
                    progress.note(f"{server.subject.label()}: {server.error}")

    def run_rounds(self, count: int, progress: Progress) -> None:
        """Runs the rounds: every server once in each, in alternating order."""
        standing = [server for server in [*self.servers, self.floor] if server.is_open]
        if standing == [self.floor]:
            return  # the floor alone compares nothing
        progress.begin(count * len(standing))
        for number in range(1, count + 1):
            for server in standing if number % 2 else standing[::-1]:
                if server.is_open:
                    progress.step(f"round {number}/{count} · {server.subject.label()}")
                    rounds = len(server.rounds)
                    server.run_round(number)
                    if server.error:
                        progress.note(f"{server.subject.label()}: {server.error}")
                    for one in server.rounds[rounds:]:
                        rate = rounds_to_case.throughput(one.outcome)
                        progress.sample("calls a second", server.subject.label(), rate, "per second")

    def run_experiments(self, progress: Progress) -> None:
        """Makes the TCP_QUICKACK experiment for each server whose results are suspicious."""
        for index, server in enumerate(self.servers):
            seen = server.load_result()
            if seen is not None and delayed_ack.is_suspected(seen):
                progress.preparing(f"{server.subject.label()}: repeating with TCP_QUICKACK")
                if (experiment := server.run_experiment(progress)) is not None:
                    self._experiments[index] = experiment

    def look_inside(self, cases: Sequence[Case], progress: Progress) -> None:
        """Starts each measured server again, instrumented, and puts a further load on it."""
        for server, case in zip(self.servers, cases, strict=True):
            server.close()
            if not server.rounds or server.error:
                continue
            name = server.subject.label()
            progress.preparing(f"{name}: looking inside")
            # Adapters start Python with -E, which ignores the variables of the instrumentation as well.
            command = tuple(word for word in server.command if word != "-E")
            try:
                with ExitStack() as stack:
                    evidence = stack.enter_context(InsideEvidence(server.command, progress.note))
                    again = ServerUnderTest(
                        server.subject, self.conditions, command, server.environment, evidence=evidence
                    )
                    stack.callback(again.close)
                    case.inside_sums = again.look_inside(case)
            except FAILURES as problem:
                progress.note(f"{name} could not be looked into: {problem}")

    def server_cases(self) -> list[Case]:
        """The case of each server. All but the first have their ratio to the first."""
        cases = []
        for index, server in enumerate(self.servers):
            case = rounds_to_case.server_case(server, f"workload:{self.conditions.workload.name}", self.plan)
            seen = server.load_result()
            if seen is not None:
                finding = delayed_ack.suspected_finding(seen, self._experiments.get(index))
                case.findings = [finding] if finding else []
            cases.append(case)
        for case in cases[1:]:
            assert case.server is not None, "every case has its server's facts"
            case.server.ratio = rounds_to_case.throughput_ratio(case, cases[0])
        return cases

    def close(self) -> None:
        """Ends all servers."""
        with ExitStack() as stack:
            for server in [*self.servers, self.floor]:
                stack.callback(server.close)


def _common_conditions(plan: ServersPlan, stack: ExitStack) -> Conditions:
    """Builds the servers' common conditions. Starts the workload's backends, which run until ``stack`` is closed."""
    model, round_s = plan.load_model(), plan.round_s()
    session = resolve_session(plan.session, plan.revision or REVISION)
    cap = limits.choose_cap(_processor_count(plan.cpus), limits.parse_memory(plan.memory))
    with limits.avoid_server_cores(cap):
        workload = stack.enter_context(Workload(plan.workload))
    return Conditions(
        workload,
        cap,
        model,
        plan.tried_revisions(),
        session,
        plan.state,
        round_s,
        plan.warm_up_s,
        READY_LIMIT_S,
        plan.server_timing,
    )


def _resolve_subjects(plan: ServersPlan, progress: Progress) -> list[Resolved]:
    plan.check_settings()
    subjects = [_resolve_server(text, plan.workload, progress) for text in plan.subjects]
    for index, one in enumerate(subjects):
        if one in subjects[:index]:
            raise UsageProblem(f"{plan.subjects[index]} is named twice; each server stands for one row")
    return subjects


def _resolve_server(text: str, workload: str, progress: Progress) -> Resolved:
    """Resolves a subject to one server. A release with a finished environment needs no package index."""
    try:
        return adapter_subject.resolve_subject(text, progress.preparing, Role.SERVER)
    except ReleasesProblem:
        subject = adapter_subject.parse_subject(text, toml_file.load_all(), Role.SERVER)
        version = str(subject.selection)
        if release_environment.find_ready(subject.adapter, version, Role.SERVER, workload) is None:
            raise
        return Resolved(
            subject.adapter, version, subject.mode or next(iter(subject.adapter.supported_modes(Role.SERVER)), None)
        )


def _server_subject(resolved: Resolved) -> Subject:
    return Subject(sdk=resolved.adapter.name, version=resolved.version, mode=resolved.mode)


def _set_environment(server: ServerUnderTest, resolved: Resolved, environment: Environment) -> None:
    server.command, server.environment = resolved.adapter.server_command(environment), environment


def _processor_count(requested: float | None) -> float:
    """Number of processors: by default two, as in most published comparisons, or one where there is only one."""
    if requested is not None:
        return requested
    return float(min(2, len(usable_cores())))


def _described_plan(conditions: Conditions) -> LoadPlan:
    """Plan that describes all rounds in the cases. Each round's own plan adds its server's URL and its seed."""
    calls = conditions.workload.load_operations()
    return LoadPlan(
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


def _comparison_facts(conditions: Conditions, plan: ServersPlan) -> ServerComparison:
    return ServerComparison(
        workload=conditions.workload.name,
        operations={one.name: one.arguments or {} for one in conditions.workload.load_operations().operations},
        model={"kind": conditions.model.kind, **vars(conditions.model)},
        revision=conditions.revisions[0],
        session=conditions.session,
        state=conditions.state,
        rounds=plan.rounds,
        round_s=conditions.round_s,
        round_warm_up_s=ROUND_WARM_UP_S,
        cap=_server_cap(conditions.cap),
        behind=conditions.workload.backends(),
    )


def _server_cap(cap: Cap) -> ServerCap:
    return ServerCap(
        by=cap.by,
        cpus=cap.cpus,
        memory_bytes=cap.memory_bytes,
        memory_limited=cap.limits_memory,
        cores=list(cap.cores),
        load_cores=list(cap.others),
    )
