"""One server under test: started with its limits, checked, warmed up, under load in its rounds, stopped between them.

Between its rounds a server is stopped (SIGSTOP). It keeps its memory, its connections to its backends and its compiled
code, and takes no processor time from the server under load.

Design constraint: A failure of a server becomes its error, and the comparison continues with the other servers. The
server's earlier rounds are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab.environments.environment import Environment
from mcpace.lab.errors import LabError, Unsupported
from mcpace.lab.inside.evidence import InsideEvidence
from mcpace.lab.load.delayed_ack import Experiment, LoadResult
from mcpace.lab.load.engine import Quiet, run_engine
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.histogram import merge_buckets
from mcpace.lab.load.inside_load import LONGEST_STRETCH_S, run_stretch, sum_stretch
from mcpace.lab.load.layers import LayerSampler
from mcpace.lab.load.outcome_to_case import CALLS
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Open
from mcpace.lab.load.settings import Session
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.limits import Cap, Confinement
from mcpace.lab.processes.process_usage import UsageWatch, read_usage
from mcpace.lab.progress import Progress
from mcpace.lab.servers.server_program import ServerProgram, State
from mcpace.lab.servers.shop import Account
from mcpace.lab.servers.workloads import Workload
from mcpace.report.model.inside import InsideSums
from mcpace.report.model.run import Case, Subject
from mcpace.report.model.servers import ServerFacts

CHECK_LIMIT_S = 30.0
TIMEOUT_S = 30.0
DRAIN_S = 5.0
ROUND_WARM_UP_S = 1.0
"""Warm-up seconds of each round, left out of the results: connections and sessions are opened in them."""
EXPERIMENT_S = 2.0

NULL_SERVER = (sys.executable, "-P", "-m", "mcpace.lab.servers.null_server")


@dataclass(frozen=True)
class Conditions:
    """Settings shared by all servers of a comparison."""

    workload: Workload
    cap: Cap
    model: Closed | Open
    revisions: tuple[str, ...]
    """Revisions to try with a server, in order."""
    session: Session
    state: State
    round_s: float
    warm_up_s: float
    """Seconds of load before the first round."""
    ready_limit_s: float
    server_timing: bool = False
    """Whether an additional user requests the servers' layer timings."""


@dataclass(frozen=True)
class Round:
    """Results of one round."""

    outcome: Outcome
    cpu_s: float | None
    """Processor time of the whole round, including its warm-up."""
    rss_bytes: int | None

    @property
    def calls_in_all(self) -> int:
        """Calls that the processor time covers, including those of the warm-up."""
        warm_up = sum(second.ok + second.errors for second in self.outcome.seconds if second.warm_up)
        return warm_up + sum(one.count for one in self.outcome.operations if one.kind in CALLS)

    @property
    def cpu_s_per_call(self) -> float | None:
        """Processor time of a call; ``None`` where no processor time was measured, or no call was made."""
        return self.cpu_s / self.calls_in_all if self.cpu_s is not None and self.calls_in_all else None


@dataclass
class ServerUnderTest:
    """A server and its results. :meth:`start_server` and :meth:`close` may be called in any order and state."""

    subject: Subject
    conditions: Conditions
    command: tuple[str, ...] = ()
    environment: Environment | None = None
    checked: bool = True
    """Whether its answers are checked first. The null server has only one answer and isn't checked."""
    evidence: InsideEvidence | None = None
    """Evidence about the inside of the server, which is then instrumented."""
    error: str | None = None
    unsupported: str | None = None
    facts: ServerFacts = field(default_factory=ServerFacts)
    rounds: list[Round] = field(default_factory=list)
    layer_ledgers: list[dict[str, Any]] = field(default_factory=list)
    """For each round, the sum of the ledgers of the instrumented calls."""

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        self._program: ServerProgram | None = None
        self._confinement: Confinement | None = None
        self._account: Account | None = None

    @property
    def is_open(self) -> bool:
        """Whether the server can be put under load."""
        return self._program is not None

    def start_server(self) -> None:
        """Starts the server, checks it, warms it up, and stops it (SIGSTOP)."""
        try:
            program = self._start_program()
            self._check_program(program)
            usage = read_usage(program.pid)
            if usage is not None:
                self.facts.rss_idle_bytes, self.facts.processes = usage.rss_bytes, usage.processes
            if self.conditions.warm_up_s:
                _run_unless_interrupted(self._load_plan(self.conditions.warm_up_s, seed=0))
            self._pause_program(program)
        except Unsupported as problem:
            self.unsupported = str(problem)
            self.close()
        except LabError as problem:
            self._give_up(str(problem))

    def run_round(self, number: int) -> None:
        """Runs one round. Ctrl-C keeps the measurements so far and raises ``KeyboardInterrupt``."""
        program = self._resume_program()
        if program is None:
            return
        try:
            with defer_interrupt():
                with UsageWatch(program.pid) as watch:
                    plan = self._load_plan(self.conditions.round_s, warm_up_s=ROUND_WARM_UP_S, seed=number)
                    outcome = self._run_load_round(plan)
                # A round that was interrupted in its warm-up has no measurements.
                if outcome.measured_s > 0 and any(one.count for one in outcome.operations if one.kind in CALLS):
                    self.rounds.append(Round(outcome, watch.cpu_s, watch.rss_bytes))
            usage = read_usage(program.pid)
            if usage is not None:
                self.facts.processes = max(self.facts.processes or 0, usage.processes)
            if outcome.ended == "stopped":
                raise KeyboardInterrupt
            self._end_round(program, outcome)
        except LabError as problem:
            self._give_up(str(problem))

    def _run_load_round(self, plan: LoadPlan) -> Outcome:
        if not (self.conditions.server_timing and self.checked):
            return run_engine(plan, Quiet())
        with LayerSampler(
            self._layer_client, plan.operations, plan.data, plan.warm_up_s + self.conditions.round_s
        ) as sampler:
            outcome = run_engine(plan, Quiet())
        self.layer_ledgers.append(sampler.ledger_sum())
        return outcome

    def _layer_client(self) -> _core.Client:
        assert self._program is not None, "only an open server is put under load"
        url, revision = self._program.url, self.facts.revision or self.conditions.revisions[0]
        return _core.Client(url, revision=revision, limit_s=CHECK_LIMIT_S, server_timing=True)

    def run_experiment(self, progress: Progress) -> Experiment | None:
        """Makes short loads with and without TCP_QUICKACK. Returns ``None`` where they fail."""
        program = self._resume_program()
        if program is None:
            return None
        alone = Closed(vus=1)
        try:
            plain, quick, alone_plain, alone_quick = (
                self._measure_load(program, replace(plan, quick_ack=quick_ack))
                for plan in (self._load_plan(EXPERIMENT_S, seed=1), self._load_plan(EXPERIMENT_S, seed=1, model=alone))
                for quick_ack in (False, True)
            )
            self._pause_program(program)
        except LabError as problem:
            progress.note(f"{self.subject.label()}: the experiment with TCP_QUICKACK failed: {problem}")
            return None
        return Experiment(plain, quick, alone_plain, alone_quick)

    def look_inside(self, case: Case) -> InsideSums | None:
        """Makes a load that the server's evidence is about, and ends the server. ``case`` has the load without
        evidence.

        Raises :class:`LabError` where the server can't be started, or the load fails.
        """
        assert self.evidence is not None, "a server that is looked into has evidence"
        self.start_server()
        if self._resume_program() is None:
            raise LabError(self.error or self.unsupported or "it did not start")
        plan = self._load_plan(min(self.conditions.round_s, LONGEST_STRETCH_S), seed=1, warm_up_s=ROUND_WARM_UP_S)
        recording = self._layer_client().recording()
        stretch = run_stretch(plan, self.evidence)
        self.close()
        return sum_stretch(stretch, self.evidence, recording, case)

    def load_result(self) -> LoadResult | None:
        """Results of all rounds for the finding ``delayed-ack``; ``None`` without a round."""
        if not self.rounds:
            return None
        wall_s = sum(one.outcome.elapsed_s for one in self.rounds)
        cpu = [one.cpu_s for one in self.rounds if one.cpu_s is not None]
        share = sum(cpu) / (wall_s * self.conditions.cap.cpus) if len(cpu) == len(self.rounds) and wall_s else None
        return load_result_of([one.outcome for one in self.rounds], share)

    def close(self) -> None:
        """Ends the server. Closing twice is harmless."""
        program, self._program = self._program, None
        if program is not None:
            program.resume()
        self._stack.close()

    def _start_program(self) -> ServerProgram:
        conditions = self.conditions
        self._account = account = conditions.workload.open() if self.checked else None
        self._confinement = self._stack.enter_context(Confinement(conditions.cap, self.subject.label()))
        program = ServerProgram.start(
            self.command,
            mode=self.subject.mode or "json",
            state=conditions.state,
            environment=self.environment,
            env=self._variables(account),
            prefix=self._confinement.command_prefix(),
            ready_limit_s=conditions.ready_limit_s,
        )
        self._stack.callback(program.close)
        self._program = program
        if self.evidence is not None:
            self.evidence.watch(program.pid)
        ready = program.ready
        self.facts.sdk_version, self.facts.workers, self.facts.notes = ready.version, ready.workers, list(ready.notes)
        return program

    def _variables(self, account: Account | None) -> dict[str, str]:
        own = dict(account.environment()) if account else {}
        if self.evidence is None:
            return own
        # The path of the shell doesn't reach the release under test.
        return dict(self.evidence.environment([*own.items(), ("PYTHONPATH", "")]))

    def _check_program(self, program: ServerProgram) -> None:
        if not self.checked:
            return
        problems: list[_core.ClientProblem] = []
        for revision in self.conditions.revisions:
            client = _core.Client(program.url, revision=revision, limit_s=CHECK_LIMIT_S)
            try:
                client.connect()
                self.facts.revision = revision
                self.facts.checked = self.conditions.workload.check(client, self._account)
                return
            except _core.ClientProblem as problem:
                problems.append(problem)
                if self.facts.revision:
                    break  # the server supports this revision, so another one won't help
            finally:
                client.disconnect()
        # The problem with the first revision is reported, unless the server connected with a later one or has exited.
        reported = problems[-1] if self.facts.revision else problems[0]
        raise program.exit_error() or LabError(f"its answers can't be checked: {reported}") from reported

    def _end_round(self, program: ServerProgram, outcome: Outcome) -> None:
        """Stops the server after a round. Raises the reason where the server has exited or the load failed."""
        if (death := program.exit_error()) is not None:
            raise self._died_for_memory() or death
        if outcome.ended == "failed":
            raise LabError(outcome.failure or "the load failed")
        self._pause_program(program)

    def _died_for_memory(self) -> LabError | None:
        if self._confinement is None or not self._confinement.killed_for_memory():
            return None
        limit = self.conditions.cap.memory_bytes or 0
        return LabError(f"it took more than the {limit / 2**20:,.0f} MiB of --memory, and the kernel killed it")

    def _resume_program(self) -> ServerProgram | None:
        if self._program is not None:
            self._program.resume()
        return self._program

    def _pause_program(self, program: ServerProgram) -> None:
        program.pause()

    def _give_up(self, reason: str) -> None:
        self.error = reason
        self.close()

    def _load_plan(
        self, duration_s: float, *, seed: int, warm_up_s: float = 0.0, model: Closed | Open | None = None
    ) -> LoadPlan:
        assert self._program is not None, "only an open server is put under load"
        conditions = self.conditions
        calls = conditions.workload.load_operations()
        return LoadPlan(
            target=HttpTarget(url=self._program.url),
            revision=self.facts.revision or conditions.revisions[0],
            session=conditions.session,
            model=model or conditions.model,
            duration_s=duration_s,
            warm_up_s=warm_up_s,
            operations=calls.operations,
            data=calls.data,
            timeout_s=TIMEOUT_S,
            drain_s=DRAIN_S,
            cores=list(conditions.cap.others[:1]) or None,
            seed=seed,
        )

    def _measure_load(self, program: ServerProgram, plan: LoadPlan) -> LoadResult:
        outcome = _run_unless_interrupted(plan)
        if outcome.ended == "failed":
            raise program.exit_error() or LabError(outcome.failure or "the load failed")
        return load_result_of([outcome], None)


def load_result_of(outcomes: Sequence[Outcome], cpu_share: float | None) -> LoadResult:
    """Combines the calls of several loads."""
    calls = [one for outcome in outcomes for one in outcome.operations if one.kind in CALLS]
    good = sum(one.service.count for one in calls)
    requests = sum(one.count for outcome in outcomes for one in outcome.operations)
    reused = sum(outcome.connections.reused_requests for outcome in outcomes)
    return LoadResult(
        buckets=merge_buckets(one.service.buckets for one in calls),
        mean_s=sum(one.service.mean_s * one.service.count for one in calls) / good if good else 0.0,
        calls=good,
        reused_share=min(reused / requests, 1.0) if requests else 0.0,
        cpu_share=cpu_share,
    )


def _run_unless_interrupted(plan: LoadPlan) -> Outcome:
    """Runs a load whose results are dropped on Ctrl-C."""
    outcome = run_engine(plan, Quiet())
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    return outcome
