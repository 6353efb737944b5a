"""Measurement of one target with mcpace's own instrumented client: connect, list, call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab import targets, token_findings, tokens, tool_schema
from mcpace.lab.clients import repeats
from mcpace.lab.clients.client_under_test import GIVE_UP_AFTER
from mcpace.lab.clients.plan import Settings
from mcpace.lab.clients.trials_to_cases import Facts, Trial, operation_cases, slowest_warm
from mcpace.lab.errors import UnknownName, Unreachable, tool_error_text
from mcpace.lab.inside.evidence import InsideEvidence, open_evidence
from mcpace.lab.inside.tool_time import tool_time
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.process_samples import ProcessSamples
from mcpace.lab.processes.starters import name_started_program
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.statistics.paired_ratio import paired_ratio
from mcpace.lab.targets import Target, Tool
from mcpace.report.model.drift import Listing
from mcpace.report.model.inside import AddedTime
from mcpace.report.model.run import Case, Operation, Run, Subject

GIVE = "--tool and --args"
SLOW_START_S = 3.0
SLOW_START_TRIALS = 3
"""Time of a program's start with instrumentation above which fewer rounds start it anew, and their number."""
MOST_LISTING_BYTES = 8 * 2**20
"""Maximum size of a listing that a run keeps."""
OWN_HABITS = frozenset({"stream-not-drained"})
"""Findings caused by mcpace's client: it doesn't wait for the end of a stream that stays open after the result."""


def run(
    target: Target,
    settings: Settings,
    progress: Progress,
    *,
    revision: str | None = None,
    server_timing: bool = True,
    extra_root: Path | None = None,
    inside: bool = False,
    pid: int | None = None,
) -> Run:
    """Measures ``target``. A tool that the user didn't name is called only if it is marked read-only.

    With ``inside``, the server that mcpace starts is looked into as well; with ``pid``, the process that serves the
    target already. The rounds then alternate with rounds in which nothing is looked into, which show the added time.

    Ctrl-C ends the measurement early; the run is then marked partial. Raises :class:`LabError` where the target can't
    be reached at all.
    """
    options = {"target": target.name, "revision": revision, "server_timing": server_timing, **settings.as_options()}
    result = new_run("measure", options)
    settings.make_folder()
    looks_inside = inside or pid is not None
    comparison = _Comparison(target, settings, revision, server_timing, extra_root, progress)
    # A command usually listens on one port, so that only one of its programs can run at a time.
    in_turns = looks_inside and not (target.program is not None and target.program.command)
    progress.begin(settings.trials * (6 if looks_inside else 3))
    try:
        if looks_inside and not in_turns:
            comparison.run_rounds(range(1, (settings.trials + 1) // 2 + 1))
        with ExitStack() as stack:
            evidence = stack.enter_context(open_evidence(target, progress.note, pid)) if looks_inside else None
            plain = comparison.open_session(stack) if in_turns else None
            session: Session | None = None
            try:
                with start_target(target, progress, evidence, extra_root) as place:
                    session = Session(stack, place, settings, revision, server_timing, extra_root, evidence)
                    try:
                        for number in count(1):
                            if plain is not None:
                                with session.pause_evidence():
                                    comparison.run_round(plain, number)
                            if not session.given_up:
                                session.run_round(progress, f"{target.name} · round {number}/{comparison.rounds}")
                            if number == 1 and plain is not None:
                                comparison.note_start(session.first_connect_s)
                                result.options["trials"] = comparison.rounds
                            if number >= comparison.rounds:
                                break
                    finally:
                        with defer_interrupt():
                            session.end_sampling()
                    if session.facts.error and not session.has_results:
                        raise Unreachable(session.facts.error)
            finally:
                # A program leaves a part of its evidence as it ends.
                with defer_interrupt():
                    result.cases = session.cases(progress) if session is not None else []
                    if plain is not None:
                        comparison.add_trials(plain)
        if looks_inside and not in_turns:
            comparison.run_rounds(range((settings.trials + 1) // 2 + 1, settings.trials + 1))
        comparison.add_to(result.cases)
    except KeyboardInterrupt:
        result.partial = True
    return result


class _Comparison:
    """Rounds in which nothing is looked into. They show the time that looking inside adds to a call, and how long a
    program takes to start without instrumentation.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        revision: str | None,
        server_timing: bool,
        extra_root: Path | None,
        progress: Progress,
    ) -> None:
        self._target = target
        self.rounds = settings.trials
        self._settings = replace(settings, keep_recordings=None)
        self._options = (revision, server_timing, extra_root)
        self._progress = progress
        self._warm_calls_s: list[float] = []
        self._connects: list[Case] = []
        self._slow_start_s: float | None = None

    def note_start(self, start_s: float) -> None:
        """Sets fewer rounds where each starts a program that takes long: ``start_s`` with instrumentation."""
        if start_s > SLOW_START_S and self._settings.may_run_fewer and self.rounds > SLOW_START_TRIALS:
            self._slow_start_s = start_s
            self.rounds = SLOW_START_TRIALS

    def open_session(self, stack: ExitStack) -> Session:
        """Starts the target without instrumentation."""
        place = stack.enter_context(start_target(self._target, self._progress, extra_root=self._options[2]))
        return Session(stack, place, self._settings, *self._options, samples_processes=False)

    def run_rounds(self, numbers: range) -> None:
        """Runs rounds with a program of their own."""
        if not numbers:
            return
        with ExitStack() as stack:
            session = self.open_session(stack)
            for number in numbers:
                self.run_round(session, number)
            self.add_trials(session)

    def run_round(self, session: Session, number: int) -> None:
        """Runs one round."""
        if not session.given_up:
            where = f"{self._target.name} · round {number}/{self.rounds}, for comparison"
            session.run_round(self._progress, where)

    def add_trials(self, session: Session) -> None:
        """Adds the calls of a session's rounds. The first round is cold and left out."""
        cases = {case.operation: case for case in session.cases(self._progress)}
        self._warm_calls_s += cases["call"].trials_s[1:] if "call" in cases else []
        if session.facts.starts_process and cases["connect"].trials_s:
            self._connects.append(cases["connect"])

    def add_to(self, cases: list[Case]) -> None:
        """Adds the time that looking inside adds to a call. Replaces the connects, of which the program's start is a
        part, by those without instrumentation.
        """
        for number, case in enumerate(cases):
            if case.operation == "connect" and self._connects:
                cases[number] = max(self._connects, key=lambda plain: len(plain.trials_s))
            found = paired_ratio(case.trials_s[1:], self._warm_calls_s) if case.inside is not None else None
            if case.inside is not None and found is not None:
                ratio, low, high, rounds = found
                plain_s = statistics.median(self._warm_calls_s)
                case.inside.added = AddedTime(
                    plain_s=plain_s, ratio=ratio, low=low, high=high, rounds=rounds, slow_start_s=self._slow_start_s
                )


class Session:
    """Trials of mcpace's client at one target."""

    def __init__(
        self,
        stack: ExitStack,
        target: Target,
        settings: Settings,
        revision: str | None,
        server_timing: bool,
        extra_root: Path | None,
        evidence: InsideEvidence | None = None,
        samples_processes: bool = True,
    ) -> None:
        self.tool = target.tool
        self.preferred_tool: str | None = None
        """Where the user named no tool: the only tool that may be selected, if it is marked read-only."""
        self.was_listed = False
        """Whether the server has listed the tool before. From then on, it is called even if it is no longer listed: a
        tool that disappears is a failed call, not a mistake of the user."""
        self.behind: _core.Recording | None = None
        """Recording between the target, a gateway, and its servers, which the explanation includes."""
        self._settings = settings
        self._command = target.command
        self.first_connect_s = 0.0
        """Time of the first connect, of which the start of a program over stdio is a part; 0 before it."""
        self._failed_connects = 0
        self._noted_no_tool = False
        self._listing: list[dict[str, Any]] | None = None
        """The last listing of the tools."""
        self._largest: tuple[int, dict[str, Any]] | None = None
        """The largest result of the called tool, after its size."""
        self._repetitions: dict[Operation, list[int]] = {"connect": [], "list": [], "call": []}
        """Number of repetitions in each trial."""
        endpoint, certificate = _target_endpoint(stack, target, settings, server_timing)
        if extra_root is not None:
            certificate = targets.read_certificate(extra_root)
        self._client = _core.Client(
            endpoint,
            environment=list(target.environment),
            revision=revision,
            auth=target.auth,
            token=target.token,
            consent="follow" if target.profile else "browser",
            limit_s=settings.time_limit_s,
            server_timing=server_timing,
            extra_root=certificate,
            headers=list(target.headers),
            # The spans of the server then lead to the calls.
            traceparent=evidence is not None,
        )
        stack.callback(self._client.disconnect)
        # The server is the only child of this process.
        self._samples = (
            stack.enter_context(ProcessSamples(children_are="server")) if target.command and samples_processes else None
        )
        self._evidence = evidence
        subject = Subject(sdk="mcpace-client", mode=revision)
        self.facts = Facts(subject, target.name, self.tool.name if self.tool else None)
        self.facts.starts_process = bool(target.command)
        self.facts.own_habits = OWN_HABITS

    @property
    def has_results(self) -> bool:
        """Whether any operation was successful."""
        return any(trial.failure is None for trial in self.facts.trials)

    @property
    def listed_tools(self) -> list[str] | None:
        """Names of the tools in the last listing; ``None`` without one."""
        return None if self._listing is None else [str(tool.get("name")) for tool in self._listing]

    @property
    def given_up(self) -> bool:
        """Whether further rounds would be pointless. Without any successful operation, one failed connect is enough."""
        return self._failed_connects >= (GIVE_UP_AFTER if self.has_results else 1)

    @contextmanager
    def pause_evidence(self) -> Iterator[None]:
        """Looks into no process in the ``with`` block, in which another session has its round."""
        assert self._evidence is not None, "the rounds of a session that is looked into alternate with others"
        with self._evidence.pause_samplers():
            if self._samples is not None:
                self._samples.finds_children = False
            yield
            if self._samples is not None:
                self._samples.finds_children = True

    def run_round(self, progress: Progress, where: str) -> None:
        """Runs one session: connect, list, call, disconnect. Repeats lists and calls.

        Raises :class:`UnknownName` where the server lacks the tool that the user named, and :class:`UsageProblem` where
        required arguments of that tool are missing.
        """
        progress.step(f"{where} · connect")
        began = time.perf_counter()
        server = self._repeat_operation("connect", self._client.connect, 1)
        self.first_connect_s = self.first_connect_s or time.perf_counter() - began
        if server is None:
            self._failed_connects += 1
            return
        progress.step(f"{where} · list")
        tools = self._repeat_operation("list", self._client.list_tools, self._settings.calls)
        if tools is not None:
            self._choose_tool(tools, progress)
            self.facts.listing_tools = len(tools)
            self.facts.listing_bytes = tool_schema.listing_bytes(tools)
            self._listing = tools
            self._keep_listing(server, tools)
        progress.step(f"{where} · call")
        tool = self.tool
        if tools is not None and tool is not None:
            result = self._repeat_operation(
                "call", lambda: self._client.call_tool(tool.name, tool.arguments), self._settings.calls
            )
            if result is not None and not result.get("isError"):
                self.facts.result_kinds = tool_schema.result_kinds(result)
        self._client.disconnect()

    def end_sampling(self) -> None:
        """Takes the last evidence that only a running program gives. A server over stdio ends here."""
        self._client.disconnect()
        if self._evidence is not None and not self.facts.starts_process:
            self._evidence.end_sampling()

    def recording(self) -> _core.Recording:
        """The recording so far."""
        return self._client.recording()

    def cases(self, progress: Progress) -> list[Case]:
        """Explains the measurements and returns their cases. Call it once, after the end of a program that is looked
        into.
        """
        operations: list[Operation] = ["connect", "list"]
        if self.tool is not None:
            operations.append("call")
        cases = operation_cases(self._explain_recording(progress), operations)
        token_findings.add_findings(cases, self._listing)
        if self._evidence is not None and self.facts.explained is not None:
            for case in cases:
                if case.operation == "call":
                    case.inside = tool_time(self.facts.explained, case.tool)
        return cases

    def _choose_tool(self, tools: list[dict[str, Any]], progress: Progress) -> None:
        """Selects the tool to call from the server's listing."""
        if self.tool is None:
            self.tool = read_only_tool(tools, self.preferred_tool)
            if self.tool is not None:
                self.facts.tool = self.tool.name
            elif not self._noted_no_tool:
                self._noted_no_tool = True
                progress.note(f"no tool is called at {self.facts.target}: {_no_tool_reason(tools)}")
            return
        own = next((tool for tool in tools if tool.get("name") == self.tool.name), None)
        if self.was_listed:
            return
        if own is None:
            names = [str(tool.get("name")) for tool in tools]
            raise UnknownName(f"tool at {self.facts.target}:", self.tool.name, names)
        if not self.tool.arguments:
            tool_schema.require_arguments(own, self.tool.arguments, GIVE)
        self.was_listed = True

    def _keep_listing(self, server: dict[str, Any], tools: list[dict[str, Any]]) -> None:
        """Keeps the listing for comparisons, unless it is too large for a run's file."""
        assert self.facts.listing_bytes is not None, "the size is taken first"
        is_small = self.facts.listing_bytes <= MOST_LISTING_BYTES
        name, version, revision = (str(server.get(key) or "") for key in ("server", "version", "revision"))
        listing = Listing(server=name, version=version, revision=revision, tools=tools)
        self.facts.listing = listing if is_small else None

    def _explain_recording(self, progress: Progress) -> Facts:
        if self._listing is not None and tokens.has_tokenizer():
            self.facts.tools = tokens.tool_tokens(self._listing)
        if self._largest is not None:
            self.facts.result_tokens = tokens.result_tokens(self._largest[1])
        recording = self._client.recording()
        if self._samples is not None:
            self._samples.close()
            self._samples.add_to(recording)
        if self._evidence is not None:
            self._evidence.add_to(recording)
        keep = self._settings.recording_of(f"measure-{self.facts.target}")
        if keep is not None:
            try:
                recording.save(str(keep))
            except _core.Problem as problem:
                progress.note(str(problem))
        self.facts.explained = recording.explained(behind=self.behind)
        self.facts.given_up = self.given_up
        self._assign_calls()
        for operation in ("connect", "list", "call"):
            slowest = slowest_warm(t for t in self.facts.trials if t.operation == operation)
            if slowest is not None and slowest.call is not None:
                self.facts.waterfalls[slowest.call] = recording.waterfall(slowest.call)
        return self.facts

    def _repeat_operation(self, operation: Operation, act: Callable[[], Any], most: int) -> Any | None:
        """Repeats an operation at most ``most`` times and returns the last result; ``None`` where one failed."""
        trial = Trial(operation)
        self.facts.trials.append(trial)
        repetition_counts = self._repetitions[operation]
        durations: list[float] = []
        try:
            while not durations or repeats.wants_another(durations, most):
                start = time.perf_counter()
                result = act()
                durations.append(time.perf_counter() - start)
                if operation == "call":
                    self._keep_largest(result)
                if operation == "call" and result.get("isError"):
                    trial.failure = f"call: the tool answered with an error: {tool_error_text(result)}"
                    break
        except _core.ClientProblem as error:
            # The message may already begin with the operation: "connect took longer than …".
            problem = name_started_program(str(error), self._command)
            trial.failure = problem if problem.startswith(f"{operation} ") else f"{operation}: {problem}"
            self.facts.error = trial.failure
            self._client.disconnect()
            repetition_counts.append(len(durations) + 1)
            return None
        except KeyboardInterrupt:
            self.facts.trials.pop()
            raise
        repetition_counts.append(len(durations))
        return result

    def _keep_largest(self, result: dict[str, Any]) -> None:
        """Keeps the largest result. Its tokens are counted after the measurement, since counting takes time."""
        size = len(repr(result))
        if self._largest is None or size > self._largest[0]:
            self._largest = size, result

    def _assign_calls(self) -> None:
        """Assigns each trial its calls in the recording.

        The client timestamps every operation itself, in order, so that the times exclude this interpreter.
        """
        for operation, repetition_counts in self._repetitions.items():
            stamped = iter(self.facts.explained.trials(operation) if self.facts.explained is not None else [])
            trials = [trial for trial in self.facts.trials if trial.operation == operation]
            # Operations of a session that was interrupted are stamped last and have no trial.
            for trial, repetitions in zip(trials, repetition_counts, strict=True):
                own = list(islice(stamped, repetitions))
                trial.set_repetitions([seconds for _, seconds, _, _ in own], [call for call, _, _, _ in own])


def _target_endpoint(
    stack: ExitStack, target: Target, settings: Settings, server_timing: bool
) -> tuple[str | list[str], str | None]:
    if target.command:
        return list(target.command), None
    if target.profile is None:
        assert target.url is not None, "a target is a profile, a URL, a command or a program that was started"
        return target.url, None
    scripted = _core.Target(
        target.profile,
        hold_s=settings.hold_s,
        faults=list(settings.faults),
        token=target.token,
        server_timing=server_timing,
    )
    stack.callback(scripted.stop)
    return scripted.url, scripted.certificate_pem


def read_only_tool(tools: list[dict[str, Any]], preferred_tool: str | None) -> Tool | None:
    """Selects a tool that is marked read-only and needs no arguments: only ``preferred_tool``, if given."""
    for tool in tools:
        is_meant = preferred_tool is None or tool.get("name") == preferred_tool
        if is_meant and tool_schema.is_read_only(tool) and tool_schema.is_callable(tool):
            return Tool(tool["name"], tool_schema.fixed_arguments(tool))
    return None


def _no_tool_reason(tools: list[dict[str, Any]]) -> str:
    needy = next((tool for tool in tools if tool_schema.is_read_only(tool)), None)
    if needy is None:
        return f"none of its tools is marked read-only. Choose one with {GIVE}"
    return tool_schema.missing_message(
        needy, tool_schema.missing_arguments(needy, tool_schema.fixed_arguments(needy)), GIVE
    )
