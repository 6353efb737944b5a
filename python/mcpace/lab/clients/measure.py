"""Our own instrumented client against one target: connect, list, call, with the wire in view from inside."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab import targets, tool_schema
from mcpace.lab.clients import repeats
from mcpace.lab.clients.client_under_test import GIVE_UP_AFTER
from mcpace.lab.clients.fold import Facts, Trial, cases, slowest_warm
from mcpace.lab.clients.plan import Settings
from mcpace.lab.errors import UnknownName, Unreachable, said_by_tool
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import held
from mcpace.lab.progress import Progress
from mcpace.lab.targets import Target, Tool
from mcpace.report.model.run import Case, Operation, Run, Subject

GIVE = "--tool and --args"
OWN_HABITS = frozenset({"stream-not-drained"})
"""Our client doesn't wait for the end of a stream that a server holds open after the result."""


def run(
    target: Target,
    settings: Settings,
    progress: Progress,
    *,
    revision: str | None = None,
    server_timing: bool = True,
    extra_root: Path | None = None,
) -> Run:
    """Measures ``target``. Without a tool named by the user, only one that is marked read-only is called.

    Ctrl-C ends it early: the run comes back marked partial.
    Raises :class:`LabError` where the target can't be reached at all.
    """
    options = {"target": target.name, "revision": revision, "server_timing": server_timing, **settings.as_options()}
    result = new_run("measure", options)
    settings.make_folder()
    try:
        with ExitStack() as stack:
            session = Session(stack, target, settings, revision, server_timing, extra_root)
            progress.begin(settings.trials * 3)
            try:
                for number in range(1, settings.trials + 1):
                    if not session.given_up:
                        session.round(progress, f"{target.name} · round {number}/{settings.trials}")
            finally:
                with held():
                    result.cases = session.cases(progress)
    except KeyboardInterrupt:
        result.partial = True
        return result
    if session.facts.error and not any(case.trials_s for case in result.cases):
        raise Unreachable(session.facts.error)
    return result


class Session:
    """Trials of our client at one target."""

    def __init__(
        self,
        stack: ExitStack,
        target: Target,
        settings: Settings,
        revision: str | None,
        server_timing: bool,
        extra_root: Path | None,
    ) -> None:
        self.tool = target.tool
        self.wanted: str | None = None
        """Where no tool was named: the one that is called if it is marked read-only, and no other."""
        self.was_listed = False
        """Whether the tool is known to have been there. From then on it is called, listed or not: a server that lost
        it says so by itself, and that is a failed call, no mistake of the user's."""
        self._settings = settings
        self._failed_connects = 0
        self._told = False
        self._made: dict[Operation, list[int]] = {"connect": [], "list": [], "call": []}
        """Repetitions that the client made in each trial."""
        endpoint, certificate = _endpoint(stack, target, settings, server_timing)
        if extra_root is not None:
            certificate = targets.certificate(extra_root)
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
        )
        stack.callback(self._client.disconnect)
        subject = Subject(sdk="mcpace-client", mode=revision)
        self.facts = Facts(subject, target.name, self.tool.name if self.tool else None)
        self.facts.starts_process = bool(target.command)
        self.facts.own_habits = OWN_HABITS

    @property
    def given_up(self) -> bool:
        """Whether further rounds would be pointless: where nothing ever came, once is enough."""
        came = any(trial.failure is None for trial in self.facts.trials)
        return self._failed_connects >= (GIVE_UP_AFTER if came else 1)

    def round(self, progress: Progress, where: str) -> None:
        """One session: connect, list, call, disconnect; lists and calls are repeated.

        Raises :class:`UnknownName` where the server has no such tool as the user named, :class:`UsageProblem` where the
        tool that the user named needs arguments that were not given.
        """
        progress.step(f"{where} · connect")
        if self._timed("connect", self._client.connect, 1) is None:
            self._failed_connects += 1
            return
        progress.step(f"{where} · list")
        tools = self._timed("list", self._client.list_tools, self._settings.calls)
        if tools is not None:
            self._choose(tools, progress)
            self.facts.listing_tools = len(tools)
            self.facts.listing_bytes = tool_schema.listing_bytes(tools)
        progress.step(f"{where} · call")
        tool = self.tool
        if tools is not None and tool is not None:
            self._timed("call", lambda: self._client.call_tool(tool.name, tool.arguments), self._settings.calls)
        self._client.disconnect()

    def cases(self, progress: Progress) -> list[Case]:
        """What was measured so far, explained. Call it once."""
        operations: list[Operation] = ["connect", "list"]
        if self.tool is not None:
            operations.append("call")
        return cases(self._conclude(progress), operations)

    def _choose(self, tools: list[dict[str, Any]], progress: Progress) -> None:
        """Settles which tool is called, once the server's are known."""
        if self.tool is None:
            self.tool = _harmless(tools, self.wanted)
            if self.tool is not None:
                self.facts.tool = self.tool.name
            elif not self._told:
                self._told = True
                progress.note(f"no tool is called at {self.facts.target}: {_why_none(tools)}")
            return
        own = next((tool for tool in tools if tool.get("name") == self.tool.name), None)
        if self.was_listed:
            return
        if own is None:
            names = [str(tool.get("name")) for tool in tools]
            raise UnknownName(f"tool at {self.facts.target}:", self.tool.name, names)
        if not self.tool.arguments:
            tool_schema.require(own, self.tool.arguments, GIVE)
        self.was_listed = True

    def _conclude(self, progress: Progress) -> Facts:
        recording = self._client.recording()
        keep = self._settings.recording_of(f"measure-{self.facts.target}")
        if keep is not None:
            try:
                recording.save(str(keep))
            except _core.Problem as problem:
                progress.note(str(problem))
        self.facts.told = recording.explained()
        self.facts.given_up = self.given_up
        self._stamp()
        for operation in ("connect", "list", "call"):
            slowest = slowest_warm(t for t in self.facts.trials if t.operation == operation)
            if slowest is not None and slowest.call is not None:
                self.facts.waterfalls[slowest.call] = recording.waterfall(slowest.call)
        return self.facts

    def _timed(self, operation: Operation, act: Callable[[], Any], most: int) -> Any | None:
        """The last result of at most ``most`` repetitions; ``None`` where one failed."""
        trial = Trial(operation)
        self.facts.trials.append(trial)
        made = self._made[operation]
        taken: list[float] = []
        try:
            while not taken or repeats.wants_another(taken, most):
                begun = time.perf_counter()
                result = act()
                taken.append(time.perf_counter() - begun)
                if operation == "call" and result.get("isError"):
                    trial.failure = f"call: the tool answered with an error: {said_by_tool(result)}"
                    break
        except _core.ClientProblem as error:
            # Its own sentence may begin with the operation: "connect took longer than …".
            trial.failure = str(error) if str(error).startswith(f"{operation} ") else f"{operation}: {error}"
            self.facts.error = trial.failure
            self._client.disconnect()
            made.append(len(taken) + 1)
            return None
        except KeyboardInterrupt:
            self.facts.trials.pop()
            raise
        made.append(len(taken))
        return result

    def _stamp(self) -> None:
        """Gives each trial its calls in the recording. The client stamps every operation itself, in order, so that no
        time of this interpreter is in it."""
        for operation, made in self._made.items():
            stamped = iter(self.facts.told.trials(operation) if self.facts.told is not None else [])
            trials = [trial for trial in self.facts.trials if trial.operation == operation]
            # Operations of a session that was interrupted are stamped last and have no trial.
            for trial, repetitions in zip(trials, made, strict=True):
                own = list(islice(stamped, repetitions))
                trial.settle([seconds for _, seconds, _, _ in own], [call for call, _, _, _ in own])


def _endpoint(
    stack: ExitStack, target: Target, settings: Settings, server_timing: bool
) -> tuple[str | list[str], str | None]:
    if target.command:
        return list(target.command), None
    if target.profile is None:
        assert target.url is not None, "a target is a profile, a URL or a command"
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


def _harmless(tools: list[dict[str, Any]], wanted: str | None) -> Tool | None:
    """A tool that its server marks read-only and that needs no arguments of the user's (``wanted`` or none, where that
    is given)."""
    for tool in tools:
        is_meant = wanted is None or tool.get("name") == wanted
        if is_meant and tool_schema.is_read_only(tool) and tool_schema.is_callable(tool):
            return Tool(tool["name"], tool_schema.arguments(tool))
    return None


def _why_none(tools: list[dict[str, Any]]) -> str:
    needy = next((tool for tool in tools if tool_schema.is_read_only(tool)), None)
    if needy is None:
        return f"none of its tools is marked read-only. Choose one with {GIVE}"
    return tool_schema.needs(needy, tool_schema.missing(needy, tool_schema.arguments(needy)), GIVE)
