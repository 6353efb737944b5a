"""One subject at one target, with a recorder between the subject's client program and the server.

The recorder and a scripted target run in this process, on their own threads without the GIL. The client program is a
separate process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab.clients import repeats
from mcpace.lab.clients.client_program import Answer, ClientProgram
from mcpace.lab.clients.plan import Settings, operations_at
from mcpace.lab.clients.trials_to_cases import Facts, Trial, slowest_warm
from mcpace.lab.environments.environment import Environment
from mcpace.lab.errors import ProgramProblem, UnknownName, Unsupported
from mcpace.lab.processes.process_samples import ProcessSamples
from mcpace.lab.targets import Target
from mcpace.report.model.run import Operation, Subject

GIVE_UP_AFTER = 2
"""Rounds with a failed connect after which the subject is given up. A connect that timed out is enough by itself."""

SHOWN_FAILURE = 300
"""Most characters of a program's failure message. A library's traceback belongs to its own log."""

GRACE_S = 5.0
"""Seconds after an operation's own limit before the program counts as hung."""

STDIO_RECORDER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from mcpace import _core; sys.exit(_core.record_stdio(sys.argv[3:], sys.argv[2]))"
)


@dataclass
class _Stamped:
    """One repetition of a trial with the program's own timestamps, kept until the recording is complete."""

    trial: Trial
    start_ns: int
    end_ns: int
    outcome: str
    message: str | None

    @property
    def seconds(self) -> float:
        """Duration of the repetition."""
        return (self.end_ns - self.start_ns) / 1e9


class ClientUnderTest:
    """One subject at one target. Use as a context manager, which stops the program, the recorder and the target."""

    def __init__(
        self,
        subject: Subject,
        command: tuple[str, ...],
        environment: Environment,
        target: Target,
        settings: Settings,
        recording_file: Path | None = None,
    ) -> None:
        self.facts = Facts(subject=subject, target=target.name, tool=target.tool.name if target.tool else None)
        self.facts.starts_process = bool(target.command)
        self.unsaved: str | None = None
        """Reason why the recording couldn't be saved; ``None`` where it was saved or isn't kept."""
        self._command = command
        self._environment = environment
        self._target = target
        self._settings = settings
        self._recording_file = recording_file
        self._stack = ExitStack()
        self._program: ClientProgram | None = None
        self._recorder: _core.Recorder | None = None
        self._stdio_folder: Path | None = None
        self._stdio_files: list[Path] = []
        self._stamped: list[_Stamped] = []
        self._samples = ProcessSamples()
        self._failed_connects = 0
        self._hopeless = False

    def __enter__(self) -> ClientUnderTest:
        try:
            self._start_client()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def given_up(self) -> bool:
        """Whether further rounds would be pointless."""
        unsupported = any(trial.unsupported for trial in self.facts.trials)
        return unsupported or self._hopeless or self._failed_connects >= GIVE_UP_AFTER

    def run_round(self, step: Callable[[Operation], None]) -> None:
        """Makes one trial of each operation in one session: connect, list, call, disconnect. Repeats lists and calls.

        Raises :class:`UnknownName` where the server lacks the tool that the user named.
        """
        for operation in operations_at(self._target):
            step(operation)
            if not self._attempt_operation(operation):
                self._after_failure(operation)
                return
        self._attempt_operation("disconnect")

    def explain_recording(self) -> Facts:
        """Explains the recording. Call it once, after the rounds."""
        recording = self._finished_recording()
        if recording is None:
            return self.facts
        for _, group in groupby(self._stamped, key=lambda stamped: id(stamped.trial)):
            repetitions = list(group)
            trial = repetitions[0].trial
            tool = self.facts.tool if trial.operation == "call" else None
            durations, calls = [], []
            for one in repetitions:
                durations.append(one.seconds)
                calls.append(
                    recording.add_call(trial.operation, tool, one.start_ns, one.end_ns, one.outcome, one.message)
                )
            trial.set_repetitions(durations, calls)
        self._samples.close()
        self._samples.add_to(recording)
        if self._recording_file is not None:
            try:
                recording.save(str(self._recording_file))
            except _core.Problem as problem:
                self.unsaved = str(problem)
        self.facts.explained = recording.explained()
        for operation in operations_at(self._target):
            slowest = slowest_warm(t for t in self.facts.trials if t.operation == operation)
            if slowest is not None and slowest.call is not None:
                self.facts.waterfalls[slowest.call] = recording.waterfall(slowest.call)
        return self.facts

    def _start_client(self) -> None:
        self._stack.enter_context(self._samples)
        if self._target.command:
            folder = tempfile.TemporaryDirectory(prefix="mcpace-", ignore_cleanup_errors=True)
            self._stdio_folder = Path(self._stack.enter_context(folder))
            return
        upstream, certificate = self._target.url, None
        if self._target.profile is not None:
            scripted = _core.Target(
                self._target.profile,
                hold_s=self._settings.hold_s,
                faults=list(self._settings.faults),
                token=self._target.token,
            )
            self._stack.callback(scripted.stop)
            upstream, certificate = scripted.url, scripted.certificate_pem
        assert upstream is not None, "a target is a profile, a URL or a command"
        self._recorder = _core.Recorder(upstream, extra_root=certificate, headers=list(self._target.headers))
        self._stack.callback(self._recorder.stop)

    def _attempt_operation(self, operation: Operation) -> bool:
        trial = Trial(operation)
        most = self._settings.calls if operation in ("list", "call") else 1
        durations: list[float] = []
        try:
            while not durations or repeats.wants_another(durations, most):
                answer = self._send_operation(operation)
                self._record_answer(trial, answer)
                durations.append((answer.end_ns - answer.start_ns) / 1e9)
                if trial.failure or trial.unsupported:
                    break
        except Unsupported as error:
            trial.unsupported = str(error)
        except ProgramProblem as error:
            trial.failure = str(error)
            self._drop_program()
        if operation != "disconnect":
            self.facts.trials.append(trial)
        # Durations for the live view, before the recording is complete.
        trial.set_repetitions(durations, [])
        return trial.seconds is not None

    def _record_answer(self, trial: Trial, answer: Answer) -> None:
        outcome, message = "ok", None
        if not answer.ok:
            kind, message = answer.error_kind, bounded_line(answer.error_message or "no reason given")
            if kind == "unsupported":
                trial.unsupported = message
            else:
                trial.failure = f"{trial.operation}: {self._unreachable_reason() or message}"
                self._hopeless |= trial.operation == "connect" and kind == "timeout"
            outcome = "failed"
        elif answer.result.get("is_error"):
            outcome, message = "tool-error", str(answer.result.get("text", ""))[:500]
            trial.failure = f"call: the tool answered with an error: {message}"
        else:
            if trial.operation == "list":
                self._check_tool(answer.result)
        if answer.start_ns and answer.end_ns:
            self._stamped.append(_Stamped(trial, answer.start_ns, answer.end_ns, outcome, message))

    def _check_tool(self, listed: dict[str, Any]) -> None:
        names, tool = listed.get("names"), self._target.tool
        if tool and isinstance(names, list) and len(names) == listed.get("tools") and not listed.get("more"):
            known = [str(name) for name in names]
            if tool.name not in known:
                raise UnknownName("tool", tool.name, known)

    def _send_operation(self, operation: Operation) -> Answer:
        limit = self._settings.time_limit_s
        return self._running_program().send_command(self._command_fields(operation), timeout_s=limit + GRACE_S)

    def _command_fields(self, operation: Operation) -> dict[str, Any]:
        limit = self._settings.time_limit_s
        match operation:
            case "provider":
                return {"cmd": "provider", "url": self._target_url(), "auth": self._target.authentication()}
            case "connect":
                where = {"command": self._stdio_command()} if self._target.command else {"url": self._target_url()}
                environment = {"env": dict(self._target.environment)} if self._target.environment else {}
                auth, mode = self._target.authentication(), self.facts.subject.mode
                return {"cmd": "connect", **where, **environment, "auth": auth, "mode": mode, "timeout_s": limit}
            case "list":
                return {"cmd": "list_tools", "timeout_s": limit}
            case "call":
                assert self._target.tool is not None, "operations_at leaves call out where there is no tool"
                tool = self._target.tool
                return {"cmd": "call_tool", "name": tool.name, "arguments": tool.arguments, "timeout_s": limit}
            case "disconnect":
                return {"cmd": "disconnect", "timeout_s": limit}

    def _target_url(self) -> str:
        assert self._recorder is not None, "only stdio targets have no recorder"
        return str(self._recorder.url)

    def _stdio_command(self) -> list[str]:
        """Command that the SDK starts as its stdio server: a recorder that starts the target's command.

        The recorder's interpreter runs without site packages, since its start-up (about 20 ms) is part of the recorded
        connect.
        """
        assert self._stdio_folder is not None, "made by _open for stdio targets"
        file = self._stdio_folder / f"{len(self._stdio_files)}.jsonl.zst"
        self._stdio_files.append(file)
        package_root = str(Path(_core.__file__).parent.parent)
        return [sys.executable, "-I", "-S", "-c", STDIO_RECORDER, package_root, str(file), *self._target.command]

    def _running_program(self) -> ClientProgram:
        if self._program is None:
            self._program = ClientProgram.start(self._command, environment=self._environment)
            self._stack.callback(self._drop_program)
            self._samples.watch_process("client", self._program.pid)
        return self._program

    def _unreachable_reason(self) -> str | None:
        """Reason why the target can't be reached, if so. SDKs report only the recorder's status 502, in own words."""
        return self._recorder.unreachable if self._recorder is not None else None

    def _drop_program(self) -> None:
        if self._program is not None:
            self._program.close()
            self._program = None

    def _after_failure(self, operation: Operation) -> None:
        if operation == "connect":
            self._failed_connects += 1
            self.facts.error = self.facts.trials[-1].failure
        # A session that failed half-way is not carried into the next round.
        self._drop_program()

    def _finished_recording(self) -> _core.Recording | None:
        # The program's disconnect belongs to the recording, so the program is ended first.
        self._drop_program()
        if self._recorder is not None:
            return self._recorder.stop()
        readable = [str(file) for file in self._stdio_files if file.exists()]
        return _core.Recording.merge(readable) if readable else None


def bounded_line(text: str) -> str:
    """Joins the lines of a text and cuts it to a bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_FAILURE else f"{line[: SHOWN_FAILURE - 1]}…"
