"""Test of replicas: a dialogue and a load for each revision and policy, while copies are killed, added and replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial

from mcpace import _core
from mcpace.lab.clients.measure import read_only_tool
from mcpace.lab.errors import LabError, Unreachable, UsageProblem
from mcpace.lab.load.engine import run_engine
from mcpace.lab.load.run_load import Place, check_conversation, plan_of
from mcpace.lab.load.settings import STATELESS_SINCE, LoadSettings
from mcpace.lab.machine import new_run
from mcpace.lab.processes.strays import ended_strays
from mcpace.lab.progress import Progress
from mcpace.lab.replicas.balancer import GET_TASK, RESUME, Balancer
from mcpace.lab.replicas.copies import Copies, Copy
from mcpace.lab.replicas.dialogue import Dialogue, reason
from mcpace.lab.replicas.findings import find_lost_sessions
from mcpace.lab.replicas.plan import ReplicasPlan
from mcpace.lab.targets import Target, Tool
from mcpace.report.model.load import LoadSecond
from mcpace.report.model.replicas import Event, Policy, ReplicaLoad, ReplicasFacts, ReplicaStep, StepName
from mcpace.report.model.run import Run

SESSIONS = 3
CALLS = 3
"""Sessions of a dialogue, and the lists and calls in each after each event."""
SEND_LIMIT_S = 1.0
"""Seconds in which all long calls arrive at the copies, before a copy ends."""
HEAR_LIMIT_S = 1.0
"""Seconds in which the notification of a changed list comes."""
LOST_STATUSES = (400, 401, 404, 410, 422)
"""Statuses by which servers refuse a session that they don't know. Only 404 is the specification's."""
EVENTS_AT = {"killed": 0.25, "added": 0.5, "rolled": 0.7}
"""Share of the load's time after which each event happens."""
LONGEST_REASON = 300


def run_replicas(plan: ReplicasPlan, progress: Progress) -> Run:
    """Tests all revisions under all policies. Ctrl-C ends the test early; the run is then marked partial.

    Raises :class:`LabError` where the copies can't be started, and :class:`UsageProblem` for a wrong plan.
    """
    plan.check()
    facts = ReplicasFacts(copies=plan.copies)
    result = new_run(
        "replicas",
        {
            "command": list(plan.command),
            "copies": plan.copies,
            "policies": list(plan.policies),
            "revisions": list(plan.revisions),
            "vus": plan.vus,
            "duration_s": plan.duration_s,
        },
    )
    result.replicas = facts
    progress.begin(len(plan.revisions) * len(plan.policies))
    try:
        with ended_strays():
            tried: set[str] = set()
            for revision in plan.revisions:
                tools: _Tools | None = None
                for policy in plan.policies:
                    progress.step(f"{revision} · {policy}")
                    tools = _test_policy(plan, revision, policy, tools, facts)
                    if tools is None:
                        facts.not_tried.append(f"The server does not speak revision {revision}.")
                        break
                    tried.add(revision)
        if not tried:
            raise Unreachable(f"the server speaks none of the revisions {', '.join(plan.revisions)}")
    except KeyboardInterrupt:
        result.partial = True
    facts.findings = find_lost_sessions(facts.steps)
    return result


@dataclass(frozen=True)
class _Tools:
    """Tools for the steps in one revision, as far as the steps work with one copy alone."""

    call: Tool | None
    long: Tool | None
    question: Tool | None
    task: Tool | None
    change: Tool | None
    resumed: Tool | None
    """The tool whose stream is broken off and resumed."""


def _test_policy(
    plan: ReplicasPlan, revision: str, policy: Policy, tools: _Tools | None, facts: ReplicasFacts
) -> _Tools | None:
    """One dialogue and one load. Returns the tools, which the first policy finds; none where the server speaks another
    revision."""
    with ExitStack() as stack:
        copies = stack.enter_context(Copies(plan.command, variable=plan.port_variable, environment=plan.environment))
        balancer = stack.enter_context(Balancer(policy))
        copies.start(balancer)
        url = f"http://127.0.0.1:{balancer.port}{copies.path}"
        if tools is None:
            try:
                tools = _try_alone(plan, revision, url, balancer, facts)
            except _core.CallProblem as problem:
                if problem.args[0] == "revision":
                    return None
                raise Unreachable(f"the first copy can't be asked: {reason(problem)}") from problem
            if tools is None:
                return None
        for _ in range(1, plan.copies):
            copies.start(balancer)
        balancer.take_refusals()
        conversation = _Conversation(plan, revision, policy, url, balancer, copies, tools)
        try:
            conversation.hold()
        finally:
            conversation.close()
            facts.steps += conversation.steps
        if plan.duration_s and tools.call is not None:
            facts.loads.append(_put_load(plan, revision, policy, url, tools.call, balancer, copies))
    return tools


def _try_alone(plan: ReplicasPlan, revision: str, url: str, balancer: Balancer, facts: ReplicasFacts) -> _Tools | None:
    """Tries each step at one copy: what fails there is no fault of the balancer, and is not tried with more copies."""
    with closing(Dialogue(url, revision, plan.time_limit_s)) as alone:
        if alone.revision != revision:
            return None
        facts.server = facts.server or alone.server_name
        call = plan.tool or read_only_tool(alone.list(), None)
        if call is None:
            _note_once(
                facts, "No tool was called: none is marked read-only and needs no arguments. Name one by --tool."
            )
        if plan.long is None:
            _note_once(
                facts,
                "No call was in flight while its copy ended: name a tool that takes a second by --long-tool.",
            )

        def ask(tool: Tool) -> str:
            alone.call(tool)
            return "" if alone.questions else f"{tool.name} asks nothing"

        def run_task(tool: Tool) -> str:
            if revision < STATELESS_SINCE:
                return f"mcpace's client follows tasks since revision {STATELESS_SINCE}"
            _run_task(url, revision, plan.time_limit_s, tool)
            return "" if balancer.count_kind(GET_TASK) else f"{tool.name} did not run as a task"

        def hear_change(tool: Tool) -> str:
            with alone.listen():
                alone.call(tool)
                alone.await_change(time.monotonic() + HEAR_LIMIT_S)
            return ""

        def resume(tool: Tool) -> str:
            before = balancer.count_kind(RESUME)
            with balancer.break_streams():
                alone.call(tool)
            return "" if balancer.count_kind(RESUME) > before else "the server sends no event id ahead of its reply"

        attempts: tuple[tuple[str, str, Tool | None, Callable[[Tool], str]], ...] = (
            ("question of the server", "that asks by --question-tool", plan.question, ask),
            ("task", "that runs as a task by --task-tool", plan.task, run_task),
            ("change of a list", "that changes one by --change-tool", plan.change, hear_change),
            ("resumption of a stream", "", (plan.long or call) if revision < STATELESS_SINCE else None, resume),
        )
        works: list[Tool | None] = []
        for subject, option, tool, attempt in attempts:
            why = "" if tool is None else _attempt(attempt, tool)
            works.append(None if why else tool)
            if why:
                _note_once(facts, f"No {subject} was tried in revision {revision}: {why[:LONGEST_REASON]}.")
            elif tool is None and option:
                _note_once(facts, f"No {subject} was tried: name a tool {option}.")
        question, task, change, resumed = works
    return _Tools(call, plan.long, question, task, change, resumed)


def _attempt(attempt: Callable[[Tool], str], tool: Tool) -> str:
    """The reason why a step does not work at one copy; empty where it works."""
    try:
        return attempt(tool)
    except _core.CallProblem as problem:
        return reason(problem)


def _run_task(url: str, revision: str, limit_s: float, tool: Tool) -> None:
    """Calls a tool that becomes a task, and follows the task to its end."""
    with closing(Dialogue(url, revision, limit_s, tasks=True)) as client:
        # Copies with a shared store may say for ever that the task of a killed copy works.
        client.call(tool, limit_s)


def _note_once(facts: ReplicasFacts, words: str) -> None:
    if words not in facts.not_tried:
        facts.not_tried.append(words)


@dataclass
class _Conversation:
    """The dialogue under one policy: sessions that stay open while the copies change."""

    plan: ReplicasPlan
    revision: str
    policy: Policy
    url: str
    balancer: Balancer
    copies: Copies
    tools: _Tools
    steps: list[ReplicaStep] = field(default_factory=list)
    sessions: list[Dialogue] = field(default_factory=list)

    def hold(self) -> None:
        """All steps, in the order of the events."""
        self._step("steady", "connect", [self._open for _ in range(SESSIONS)])
        self._requests("steady")
        if (resumed := self.tools.resumed) is not None:
            self._step("steady", "resume", [partial(self._resume, one, resumed) for one in self.sessions])
        self._in_flight("killed", self.copies.kill)
        self._requests("killed")
        self._step("killed", "reconnect", [self._reconnect])
        self.copies.start(self.balancer)
        self._requests("added")
        old = list(self.copies.running)
        # The start of a copy takes longer than many a call, so the new copies run before the calls begin.
        new = [self.copies.start() for _ in old]
        self._in_flight("rolled", lambda _: self._replace(old, new))
        self._requests("rolled")
        self._step("rolled", "reconnect", [self._reconnect])

    def close(self) -> None:
        """Ends the sessions."""
        for one in self.sessions:
            one.close()

    def _open(self) -> None:
        self.sessions.append(Dialogue(self.url, self.revision, self.plan.time_limit_s))

    def _reconnect(self) -> None:
        """A new session, as a client begins it after a failure, and a call in it."""
        other = Dialogue(self.url, self.revision, self.plan.time_limit_s)
        try:
            if self.tools.call is not None:
                other.call(self.tools.call)
            else:
                other.list()
        finally:
            other.close()

    def _requests(self, event: Event) -> None:
        self._step(event, "list", [one.list for one in self.sessions for _ in range(CALLS)])
        for step, tool in (("call", self.tools.call), ("question", self.tools.question)):
            if tool is not None:
                calls = [partial(one.call, tool) for one in self.sessions for _ in range(CALLS)]
                self._step(event, step, calls)  # type: ignore[arg-type]  # two of its names
        if (task := self.tools.task) is not None:
            # One after another: tasks that are polled in turns would each meet their own copy again.
            run = partial(_run_task, self.url, self.revision, self.plan.time_limit_s, task)
            self._step(event, "task", [run] * (SESSIONS if event == "steady" else 1))
        self._hear_change(event)

    def _hear_change(self, event: Event) -> None:
        """Listens in each session, and lets one session change a list."""
        with ExitStack() as stack:
            if self.revision >= STATELESS_SINCE:
                self._step(event, "listen", [partial(stack.enter_context, one.listen()) for one in self.sessions])
            else:
                for one in self.sessions:
                    stack.enter_context(one.listen())
            if (tool := self.tools.change) is None or not self.sessions:
                return
            try:
                self.sessions[0].call(tool)
            except _core.CallProblem:
                # No list was changed. Calls that fail are counted by other steps.
                return
            until = time.monotonic() + HEAR_LIMIT_S
            self._step(event, "change", [partial(one.await_change, until) for one in self.sessions])

    def _resume(self, session: Dialogue, tool: Tool) -> None:
        with self.balancer.break_streams():
            session.call(tool)

    def _replace(self, old: Sequence[Copy], new: Sequence[Copy]) -> None:
        """Gives requests to the new copies, and ends the old ones, all at the same time."""
        for copy in new:
            self.balancer.add(copy.backend)
        with ThreadPoolExecutor(len(old)) as threads:
            list(threads.map(lambda copy: self.copies.end(copy, self.balancer), old))

    def _in_flight(self, event: Event, change: Callable[[Copy], None]) -> None:
        """Changes the copies while each session waits for a long call and tasks run, as far as there are tools."""
        long, task = self.tools.long, self.tools.task
        # A stream that the client has closed counts until its copy sends something: only what is new are these calls.
        before = {copy.backend.number: copy.backend.posts for copy in self.copies.running}
        polls = self.balancer.count_kind(GET_TASK)
        with ThreadPoolExecutor(2 * SESSIONS) as threads:
            tasks: list[Future[None]] = []
            if task is not None:
                tasks = [
                    threads.submit(_run_task, self.url, self.revision, self.plan.time_limit_s, task)
                    for _ in range(SESSIONS)
                ]
            # The first poll of each shows that it runs.
            self.balancer.await_kind(GET_TASK, polls + len(tasks), SEND_LIMIT_S)
            calls = [threads.submit(one.call, long) for one in self.sessions] if long is not None else []
            # The copy that answers most of them ends while they wait.
            self.balancer.await_posts(sum(before.values()) + len(calls), SEND_LIMIT_S)
            busiest = max(self.copies.running, key=lambda copy: copy.backend.posts - before[copy.backend.number])
            change(busiest)
            self._step(event, "in-flight", [call.result for call in calls])
            self._step(event, "task-in-flight", [one.result for one in tasks])

    def _step(self, event: Event, step: StepName, requests: list[Callable[[], object]]) -> None:
        found = ReplicaStep(revision=self.revision, policy=self.policy, event=event, step=step, requests=len(requests))
        failures: list[str] = []
        for request in requests:
            try:
                request()
            except _core.CallProblem as problem:
                failures.append(reason(problem))
        refusals = self.balancer.take_refusals()
        lost = [one for one in refusals if one.has_session and one.status in LOST_STATUSES]
        found.failed = len(failures)
        found.lost = len(lost)
        seen = [*failures, *(one.text for one in lost), *(one.text for one in refusals)]
        found.saw = seen[0].replace(self.url, "the balancer")[:LONGEST_REASON] if seen else ""
        if requests:
            self.steps.append(found)


class _Disturber:
    """Watcher of a load that kills, adds and replaces copies while it runs."""

    def __init__(self, duration_s: float, balancer: Balancer, copies: Copies) -> None:
        self._due = [(share * duration_s, event) for event, share in EVENTS_AT.items()]
        self._balancer, self._copies = balancer, copies

    def begin(self, planned_s: float) -> None: ...

    def second(self, second: LoadSecond) -> None:
        """Makes the events whose time has come."""
        while self._due and second.at_s + 1.0 >= self._due[0][0]:
            _, event = self._due.pop(0)
            if event == "killed":
                self._copies.kill(self._copies.running[0])
            elif event == "added":
                self._copies.start(self._balancer)
            else:
                self._copies.end(self._copies.running[0], self._balancer)
                self._copies.start(self._balancer)


def _put_load(
    plan: ReplicasPlan, revision: str, policy: Policy, url: str, tool: Tool, balancer: Balancer, copies: Copies
) -> ReplicaLoad:
    found = ReplicaLoad(policy=policy, revision=revision, vus=plan.vus, duration_s=plan.duration_s)
    settings = LoadSettings(
        vus=plan.vus,
        duration_s=plan.duration_s,
        warm_up_s=0.0,
        mix=((tool.name, 1.0),),
        arguments={tool.name: tool.arguments},
        revision=revision,
        timeout_s=plan.time_limit_s,
    )
    target = Target(name="the copies", url=url)
    with ExitStack() as stack:
        try:
            place = Place(stack, target, settings)
            checked, token = check_conversation(place, settings)
            load = replace(plan_of(place.plan_target(token), settings, checked), seed=1)
            outcome = run_engine(load, _Disturber(plan.duration_s, balancer, copies))
        except UsageProblem:
            raise
        except LabError as problem:
            found.error = str(problem).replace(url, "the balancer").removeprefix("the copies: ")[:LONGEST_REASON]
            return found
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    operations = [one for one in outcome.operations if one.kind == "call"]
    found.calls = sum(one.ok for one in operations)
    found.failed = sum(one.count - one.ok for one in operations)
    found.standstill_s = float(max(_standstills(second.ok for second in outcome.seconds), default=0))
    return found


def _standstills(successes: Iterator[int]) -> Iterator[int]:
    """Lengths of the sequences of seconds without a success."""
    length = 0
    for count in successes:
        length = 0 if count else length + 1
        yield length
