"""A recording of a Java program that runs already, by JDK Flight Recorder, which ``jcmd`` starts in it.

Design constraints: ``jcmd`` sends SIGQUIT, which ends a process that has no handler for it, so the handler is looked
for first. The process itself writes the recordings, into a folder that only its user can read. Where root looks into
another user's process, ``jcmd`` runs as that user. No recording goes on after the end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem, LabError, UsageProblem
from mcpace.lab.inside.instrumentation import missing_on_failure
from mcpace.lab.inside.java_reader import (
    NO_OPTIONS,
    OPTION_VARIABLES,
    RecordingReader,
    add_recording,
    clock_between,
    clock_offset,
    has_opentelemetry_agent,
)
from mcpace.lab.inside.java_recording import JavaRecording
from mcpace.lab.inside.java_runtime import EVENTS
from mcpace.lab.inside.java_tools import ensure_reader
from mcpace.lab.inside.process_facts import (
    PROC,
    command_words,
    environment_value,
    handles_signal,
    has_ended,
    open_process,
    process_runtime,
    program_path,
    shares_namespace,
)
from mcpace.lab.inside.regular_files import open_regular
from mcpace.lab.inside.runtimes import Runtime
from mcpace.lab.processes.child_processes import run_child

COMMAND_LIMIT_S = 30.0
"""Time for a command of ``jcmd``, which waits for the virtual machine for 10 s at most."""
STARTED = "Started recording"
STOPPED = "Stopped recording"
"""Beginnings of lines that ``jcmd`` prints. Its exit code is 0 also where the virtual machine refuses a command."""
MOST_RECORDING_BYTES = 256 << 20
SOCKET = "/tmp/.java_pid%d"
"""Socket at which a virtual machine takes commands. Where there is none, ``jcmd`` asks for it by SIGQUIT."""
NO_ATTACH = "-XX:+DisableAttachMechanism"


class JavaSampler:
    """Records a virtual machine from its creation until it is closed."""

    def __init__(self, pid: int, say: Say) -> None:
        """``say`` reports the compilation of the reader on first use. Raises :class:`LabError` where none records."""
        self._pid = pid
        self._missing: list[tuple[str, str]] = []
        self._recording: JavaRecording | None = None
        self._name = f"mcpace-{secrets.token_hex(4)}"
        self._is_recording = False
        self._files: list[Path] = []
        self._is_closed = False
        self._process = open_process(pid)
        with ExitStack() as stack:
            stack.callback(os.close, self._process)
            # The number may have been another process's until it was opened.
            check_java(pid)
            self._jcmd, java = find_tools(pid)
            self._has_agent = has_opentelemetry_agent(_options(pid))
            self._reader = RecordingReader(java, ensure_reader(say), self._miss)
            self._joined, self._folder = (Path(stack.enter_context(_make_folder())) for _ in range(2))
            if any(character in f"{self._folder}" for character in "\"'"):
                raise EnvironmentProblem(f"--pid: the path {self._folder} has quotes, which jcmd can't pass on")
            self._settings = Path(shutil.copy(EVENTS, self._folder))
            self._user = _other_user(pid)
            if self._user is not None and sys.platform != "win32":
                os.chown(self._folder, *self._user)
            self._clock_at_start = clock_offset()
            stack.callback(self.pause)
            self._start()
            self._sources = stack.pop_all()

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        try:
            self._stop()
        except LabError as problem:
            self._is_recording = not has_ended(self._process)
            remedy = f"; jcmd {self._pid} JFR.stop name={self._name} ends the recording" if self._is_recording else ""
            self._miss("stacks", f"{problem}{remedy}")

    def resume(self) -> None:
        """Goes on sampling."""
        try:
            if not self._missing:
                self._start()
        except LabError as problem:
            self._miss("stacks", str(problem))

    def end_sampling(self) -> None:
        """Ends the recording. Ending twice is harmless."""
        self.pause()

    def close(self) -> None:
        """Ends the recording and reads it. Closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._sources:
            self.end_sampling()
            clock = clock_between(self._clock_at_start, clock_offset())
            if self._files:
                with missing_on_failure("stacks", f"the recording of process {self._pid}", self._miss):
                    self._recording = self._reader.read(self._join_files(), clock, has_agent=self._has_agent)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds samples and pauses."""
        if self._recording is not None:
            add_recording(self._recording, recording)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)

    def _start(self) -> None:
        if not self._is_recording:
            # A command that is interrupted may have had its effect.
            self._is_recording = True
            limits = f"disk=true maxsize={MOST_RECORDING_BYTES >> 20}m"
            self._command(STARTED, f'JFR.start name={self._name} settings="{self._settings}" {limits}')

    def _stop(self) -> None:
        if self._is_recording:
            file = self._folder / f"{len(self._files)}.jfr"
            self._command(STOPPED, f'JFR.stop name={self._name} filename="{file}"')
            self._is_recording = False
            self._files.append(file)

    def _command(self, success: str, command: str) -> None:
        """Has the virtual machine run a command. Raises :class:`LabError` where that has no success."""
        ended = f"process {self._pid} ended while it was recorded"
        # The number of a process that has ended may be another one's.
        if has_ended(self._process):
            raise LabError(ended)
        done = run_child([self._jcmd, str(self._pid), command], COMMAND_LIMIT_S, env=NO_OPTIONS, user=self._user)
        lines = done.stdout.splitlines()
        if not any(line.startswith(success) for line in lines):
            if has_ended(self._process):
                raise LabError(ended)
            why = "no answer in time" if done.timed_out else in_one_line("\n".join(lines[1:]) or done.stderr, lines=1)
            raise LabError(f"process {self._pid} refuses {command.split()[0]} of JDK Flight Recorder: {why}")

    def _join_files(self) -> Path:
        """The recordings as one file: a recording is a sequence of chunks, and so are several."""
        path = self._joined / "all.jfr"
        with path.open("xb") as joined:
            for file in self._files:
                with open_regular(file) as one:
                    # The limit of a recording is an approximate one, and the folder is the other user's.
                    if os.fstat(one.fileno()).st_size > 2 * MOST_RECORDING_BYTES:
                        raise EnvironmentProblem(f"the recording of process {self._pid} is too large")
                    shutil.copyfileobj(one, joined)
        return path

    def _miss(self, source: str, reason: str) -> None:
        self._missing.append((source, reason))


def _make_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of this user's alone. A virtual machine that hangs may still write into it as it is removed."""
    return tempfile.TemporaryDirectory(prefix="mcpace-inside-", ignore_cleanup_errors=True)


def check_java(pid: int) -> None:
    """Raises :class:`LabError` where the virtual machine can't be recorded."""
    if process_runtime(pid) is not Runtime.JAVA:
        raise UsageProblem(f"--pid: process {pid} runs no Java any more")
    if not shares_namespace(pid, "mnt"):
        raise LabError(f"--pid: process {pid} has a file system of its own, such as a container's: run mcpace in there")
    is_listening = Path(SOCKET % pid).is_socket()
    if not (is_listening or handles_signal(pid, "SIGQUIT")) or NO_ATTACH in _options(pid).split():
        raise UsageProblem(
            f"--pid: process {pid} accepts no jcmd, because it was started with {NO_ATTACH} or is still starting: "
            "leave the option out, or let mcpace start the program (serve:COMMAND --inside)"
        )
    find_tools(pid)


def find_tools(pid: int) -> tuple[str, str]:
    """Paths of ``jcmd``, best of the one beside the program of the process, and of ``java``, best of the PATH's.

    ``java`` beside the program of another user is not used, because this user runs it. Raises
    :class:`EnvironmentProblem` where there is none.
    """
    own = program_path(pid)
    # The program of Java 8 is in jre/bin.
    beside = [] if own is None else [str(own.parent), str(own.parent.parent.parent / "bin")]
    path = os.environ.get("PATH", os.defpath)
    jcmd = shutil.which("jcmd", path=os.pathsep.join([*beside, path]))
    # The reader needs Java 11, and the program of a server may be older.
    java = shutil.which("java", path=path)
    if java is None and _other_user(pid) is None:
        java = shutil.which("java", path=os.pathsep.join(beside))
    if jcmd is None or java is None:
        raise EnvironmentProblem(
            f"--pid: process {pid} is recorded by jcmd, which is part of a JDK, and none was found: {REMEDIES['maven']}"
        )
    return jcmd, java


def _other_user(pid: int) -> tuple[int, int] | None:
    """The user and the group of a process, which root looks into; ``None`` for an own process."""
    if sys.platform == "win32":
        return None
    try:
        state = (PROC / str(pid)).stat()
    except OSError:
        raise UsageProblem(f"--pid: there is no process {pid}") from None
    return (state.st_uid, state.st_gid) if state.st_uid != os.geteuid() else None


def _options(pid: int) -> str:
    """The options with which a virtual machine was started."""
    given = (environment_value(pid, name) for name in OPTION_VARIABLES)
    return " ".join([*command_words(pid), *filter(None, given)])
