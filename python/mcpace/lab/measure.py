"""Our own instrumented client against one target: connect, list, call, with the wire in view from inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab.errors import LabError, Unreachable
from mcpace.lab.experiment import new_run
from mcpace.lab.fold import Facts, Trial, cases, slowest_warm
from mcpace.lab.plan import Settings
from mcpace.lab.progress import Progress
from mcpace.lab.targets import Target, Tool
from mcpace.report.run import Operation, Run, Subject


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
    options = {"target": target.name, "revision": revision, **settings.as_options()}
    result = new_run("measure", options)
    with ExitStack() as stack:
        session = _Session(stack, target, settings, revision, server_timing, extra_root)
        progress.begin(settings.trials * 3)
        try:
            for number in range(1, settings.trials + 1):
                session.round(progress, f"{target.name} · round {number}/{settings.trials}")
        except KeyboardInterrupt:
            result.partial = True
        operations: list[Operation] = ["connect", "list", "call"]
        if session.tool is None:
            operations.remove("call")
            if not result.partial:
                progress.note(
                    f"no tool was called: none of {target.name}'s tools is marked read-only. Name one with --tool."
                )
        facts = session.conclude(settings.keep_recordings)
        result.cases = cases(facts, operations)
    if facts.error and not any(case.trials_s for case in result.cases):
        raise Unreachable(facts.error)
    return result


class _Session:
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
        self._settings = settings
        endpoint, certificate = _endpoint(stack, target, settings)
        if extra_root is not None:
            certificate = _certificate(extra_root)
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
        )
        stack.callback(self._client.disconnect)
        subject = Subject(sdk="mcpace-client", mode=revision)
        self.facts = Facts(subject, target.name, self.tool.name if self.tool else None)

    def round(self, progress: Progress, where: str) -> None:
        """One session: connect, list, call, disconnect."""
        progress.step(f"{where} · connect")
        if self._timed("connect", self._client.connect) is None:
            return
        progress.step(f"{where} · list")
        tools = self._timed("list", self._client.list_tools)
        if tools is not None and self.tool is None:
            self.tool = _read_only(tools)
            self.facts.tool = self.tool.name if self.tool else None
        progress.step(f"{where} · call")
        tool = self.tool
        if tools is not None and tool is not None:
            self._timed("call", lambda: self._client.call_tool(tool.name, tool.arguments))
        self._client.disconnect()

    def conclude(self, keep: Path | None) -> Facts:
        """Explains what was recorded."""
        recording = self._client.recording()
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            recording.save(str(keep / "measure.jsonl.zst"))
        self.facts.ledgers = recording.ledgers()
        self.facts.findings = recording.findings()
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
            trial.failure = f"{operation}: {error}"
            self.facts.error = trial.failure
            self._client.disconnect()
            return None
        except KeyboardInterrupt:
            self.facts.trials.pop()
            raise
        if operation == "call" and result.get("isError"):
            trial.failure = f"call: the tool answered with an error: {json.dumps(result.get('content'))[:300]}"
        return result

    def _stamp(self) -> None:
        """Gives each trial its call in the recording. The client stamps every operation itself, in order, so that no
        time of this interpreter is in it."""
        for operation in ("connect", "list", "call"):
            stamped = [ledger for ledger in self.facts.ledgers if ledger["operation"] == operation]
            trials = [trial for trial in self.facts.trials if trial.operation == operation]
            # An operation that was interrupted is stamped last and has no trial.
            for trial, ledger in zip(trials, stamped, strict=False):
                trial.call = ledger["call"]
                if trial.failure is None:
                    trial.seconds = (ledger["end_ns"] - ledger["start_ns"]) / 1e9


def _endpoint(stack: ExitStack, target: Target, settings: Settings) -> tuple[str | list[str], str | None]:
    if target.command:
        return list(target.command), None
    if target.profile is None:
        assert target.url is not None, "a target is a profile, a URL or a command"
        return target.url, None
    scripted = _core.Target(
        target.profile, hold_s=settings.hold_s, faults=list(settings.faults), token=target.token, server_timing=True
    )
    stack.callback(scripted.stop)
    return scripted.url, scripted.certificate_pem


def _certificate(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise LabError(f"cannot read the certificate {path}: {error.strerror}") from error


def _read_only(tools: list[dict[str, Any]]) -> Tool | None:
    """A tool that its server marks read-only, with arguments made from its schema."""
    for tool in tools:
        if (tool.get("annotations") or {}).get("readOnlyHint") is True:
            schema = tool.get("inputSchema") or {}
            properties = schema.get("properties") or {}
            return Tool(
                tool["name"], {name: _sample(properties.get(name) or {}) for name in schema.get("required") or []}
            )
    return None


def _sample(schema: dict[str, Any]) -> Any:
    """A value of a JSON Schema's type; its default or first allowed value where it has one."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    samples: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}, "null": None}
    return samples.get(schema.get("type", "string"), "mcpace")
