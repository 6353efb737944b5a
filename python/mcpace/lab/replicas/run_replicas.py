"""Test of replicas: a dialogue and a load for each revision and policy, while copies are killed, added and replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

from mcpace import _core
from mcpace.lab.clients.measure import read_only_tool
from mcpace.lab.errors import LabError, Unreachable, UsageProblem
from mcpace.lab.load.engine import run_engine
from mcpace.lab.load.run_load import Place, check_conversation, plan_of
from mcpace.lab.load.settings import STATELESS_SINCE, LoadSettings
from mcpace.lab.machine import new_run
from mcpace.lab.processes.strays import ended_strays
from mcpace.lab.progress import Progress
from mcpace.lab.replicas.balancer import Balancer
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
                for policy in plan.policies:
                    progress.step(f"{revision} · {policy}")
                    agreed = _test_policy(plan, revision, policy, facts)
                    if agreed != revision:
                        facts.not_tried.append(f"The server does not speak revision {revision}.")
                        break
                    tried.add(agreed)
        if not tried:
            raise Unreachable(f"the server speaks none of the revisions {', '.join(plan.revisions)}")
    except KeyboardInterrupt:
        result.partial = True
    facts.findings = find_lost_sessions(facts.steps)
    return result


def _test_policy(plan: ReplicasPlan, revision: str, policy: Policy, facts: ReplicasFacts) -> str:
    """One dialogue and one load. Returns the revision that the server agreed to."""
    with ExitStack() as stack:
        copies = stack.enter_context(Copies(plan.command, variable=plan.port_variable, environment=plan.environment))
        balancer = stack.enter_context(Balancer(policy))
        for _ in range(plan.copies):
            copies.start(balancer)
        url = f"http://127.0.0.1:{balancer.port}{copies.path}"
        try:
            # One copy without the balancer: it tells the revision and the tools.
            first = Dialogue(copies.running[0].program.url, revision, plan.time_limit_s)
            with closing(first):
                if (agreed := first.revision) != revision:
                    return agreed
                facts.server = facts.server or first.server_name
                tool = plan.tool or read_only_tool(first.list(), None)
                question = _question_that_works(plan, first, revision, facts)
        except _core.CallProblem as problem:
            if problem.args[0] == "revision":
                return ""
            raise Unreachable(f"the first copy can't be asked: {reason(problem)}") from problem
        if tool is None:
            _note_once(
                facts, "No tool was called: none is marked read-only and needs no arguments. Name one by --tool."
            )
        for missing, words in (
            (plan.question, "No question of the server was tried: name a tool that asks by --question-tool."),
            (plan.long, "No call was in flight while its copy ended: name a tool that takes a second by --long-tool."),
        ):
            if missing is None:
                _note_once(facts, words)
        balancer.take_refusals()
        conversation = _Conversation(plan, revision, policy, url, balancer, copies, tool, question)
        try:
            conversation.hold()
        finally:
            conversation.close()
            facts.steps += conversation.steps
        if plan.duration_s and tool is not None:
            facts.loads.append(_put_load(plan, revision, policy, url, tool, balancer, copies))
    return revision


def _question_that_works(plan: ReplicasPlan, dialogue: Dialogue, revision: str, facts: ReplicasFacts) -> Tool | None:
    """The tool that asks, if its question is answered without a balancer."""
    if plan.question is None:
        return None
    try:
        dialogue.call(plan.question)
    except _core.CallProblem as problem:
        _note_once(facts, f"No question was tried in revision {revision}: {reason(problem)[:LONGEST_REASON]}.")
        return None
    if not dialogue.questions:
        _note_once(facts, f"No question was tried in revision {revision}: {plan.question.name} asks nothing.")
        return None
    return plan.question


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
    tool: Tool | None
    question: Tool | None
    steps: list[ReplicaStep] = field(default_factory=list)
    sessions: list[Dialogue] = field(default_factory=list)

    def hold(self) -> None:
        """All steps, in the order of the events."""
        self._step("steady", "connect", [self._open for _ in range(SESSIONS)])
        self._requests("steady")
        if self.revision >= STATELESS_SINCE:
            self._step("steady", "listen", [one.listen for one in self.sessions])
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
            if self.tool is not None:
                other.call(self.tool)
            else:
                other.list()
        finally:
            other.close()

    def _requests(self, event: Event) -> None:
        self._step(event, "list", [one.list for one in self.sessions for _ in range(CALLS)])
        for step, tool in (("call", self.tool), ("question", self.question)):
            if tool is not None:
                calls = [lambda one=one, tool=tool: one.call(tool) for one in self.sessions for _ in range(CALLS)]
                self._step(event, step, calls)  # type: ignore[arg-type]  # two of its names

    def _replace(self, old: Sequence[Copy], new: Sequence[Copy]) -> None:
        """Gives requests to the new copies, and ends the old ones, all at the same time."""
        for copy in new:
            self.balancer.add(copy.backend)
        with ThreadPoolExecutor(len(old)) as threads:
            list(threads.map(lambda copy: self.copies.end(copy, self.balancer), old))

    def _in_flight(self, event: Event, change: Callable[[Copy], None]) -> None:
        """Changes the copies while each session waits for a long call; without a long tool only changes them."""
        long = self.plan.long
        if long is None:
            change(self.copies.running[0])
            return
        # A stream that the client has closed counts until its copy sends something: only what is new are these calls.
        before = {copy.backend.number: copy.backend.posts for copy in self.copies.running}
        with ThreadPoolExecutor(SESSIONS) as threads:
            calls = [threads.submit(one.call, long) for one in self.sessions]
            # The copy that answers most of them ends while they wait.
            self.balancer.await_posts(sum(before.values()) + len(calls), SEND_LIMIT_S)
            busiest = max(self.copies.running, key=lambda copy: copy.backend.posts - before[copy.backend.number])
            change(busiest)
            self._step(event, "in-flight", [call.result for call in calls])

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
