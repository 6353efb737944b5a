"""Our own instrumented client against one target: connect, list, call, with the wire in view from inside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab import samples, targets
from mcpace.lab.errors import UnknownName, Unreachable, said_by_tool
from mcpace.lab.fold import Facts, Trial, cases, slowest_warm
from mcpace.lab.interruption import held
from mcpace.lab.plan import Settings
from mcpace.lab.progress import Progress
from mcpace.lab.runs import new_run
from mcpace.lab.station import GIVE_UP_AFTER
from mcpace.lab.targets import Target, Tool
from mcpace.report.run import Case, Operation, Run, Subject


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

    @property
    def given_up(self) -> bool:
        """Whether further rounds would be pointless: where nothing ever came, once is enough."""
        came = any(trial.failure is None for trial in self.facts.trials)
        return self._failed_connects >= (GIVE_UP_AFTER if came else 1)

    def round(self, progress: Progress, where: str) -> None:
        """One session: connect, list, call, disconnect.

        Raises :class:`UnknownName` where the server has no such tool as the user named.
        """
        progress.step(f"{where} · connect")
        if self._timed("connect", self._client.connect) is None:
            self._failed_connects += 1
            return
        progress.step(f"{where} · list")
        tools = self._timed("list", self._client.list_tools)
        if tools is not None:
            self._choose(tools, progress)
        progress.step(f"{where} · call")
        tool = self.tool
        if tools is not None and tool is not None:
            self._timed("call", lambda: self._client.call_tool(tool.name, tool.arguments))
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
            self.tool = _read_only(tools, self.wanted)
            if self.tool is not None:
                self.facts.tool = self.tool.name
            elif not self._told:
                self._told = True
                where = self.facts.target
                progress.note(f"no tool is called: none of {where}'s tools is marked read-only. Name one with --tool.")
        elif not self.was_listed and self.tool.name not in (names := [str(tool.get("name")) for tool in tools]):
            raise UnknownName(f"tool at {self.facts.target}:", self.tool.name, names)
        self.was_listed |= self.tool is not None

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

    def _timed(self, operation: Operation, act: Callable[[], Any]) -> Any | None:
        trial = Trial(operation)
        self.facts.trials.append(trial)
        try:
            result = act()
        except _core.ClientProblem as error:
            # Its own sentence may begin with the operation: "connect took longer than …".
            trial.failure = str(error) if str(error).startswith(f"{operation} ") else f"{operation}: {error}"
            self.facts.error = trial.failure
            self._client.disconnect()
            return None
        except KeyboardInterrupt:
            self.facts.trials.pop()
            raise
        if operation == "call" and result.get("isError"):
            trial.failure = f"call: the tool answered with an error: {said_by_tool(result)}"
        return result

    def _stamp(self) -> None:
        """Gives each trial its call in the recording. The client stamps every operation itself, in order, so that no
        time of this interpreter is in it."""
        for operation in ("connect", "list", "call"):
            stamped = self.facts.told.trials(operation) if self.facts.told is not None else []
            trials = [trial for trial in self.facts.trials if trial.operation == operation]
            # An operation that was interrupted is stamped last and has no trial.
            for trial, (call, seconds, _, _) in zip(trials, stamped, strict=False):
                trial.call = call
                if trial.failure is None:
                    trial.seconds = seconds


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


def _read_only(tools: list[dict[str, Any]], wanted: str | None) -> Tool | None:
    """A tool that its server marks read-only (``wanted`` or none, where it is said), its arguments by its schema."""
    for tool in tools:
        is_meant = wanted is None or tool.get("name") == wanted
        if is_meant and (tool.get("annotations") or {}).get("readOnlyHint") is True:
            return Tool(tool["name"], samples.arguments(tool.get("inputSchema")))
    return None
