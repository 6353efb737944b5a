"""Instruments Java programs with OpenTelemetry's agent, and records their stacks by JDK Flight Recorder.

Design constraint: A virtual machine that does not know an option does not start. The options are tried first with the
program ``java`` that the command starts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.instrumentation import Variables, missing_on_failure, user_exporter_settings
from mcpace.lab.inside.java_recording import JavaRecording, read_recording
from mcpace.lab.inside.java_tools import READER, ensure_agent, ensure_reader
from mcpace.lab.inside.runtimes import Runtime, command_runtimes
from mcpace.lab.processes.child_processes import run_child

OPTIONS = "JAVA_TOOL_OPTIONS"
OPTION_VARIABLES = (OPTIONS, "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables from which virtual machines read options. Programs of mcpace's own run without them."""
EVENTS = Path(__file__).parent / "java" / "events.jfc"
QUIET_OPTIONS = ("-Xlog:jfr+startup=off", "-XX:+DisplayVMOutputToStderr")
"""Options that keep the recorder from writing to stdout, which belongs to the protocol: new and old releases."""
STACK_DEPTH = 256
INSTRUMENTED = (
    "apache-httpasyncclient", "apache-httpclient", "http-url-connection", "java-http-client", "jdbc", "jedis",
    "lettuce", "mongo", "okhttp", "r2dbc", "reactor-netty", "vertx-http-client", "vertx-redis-client",
    "vertx-sql-client",
)  # fmt: skip
"""Libraries that make requests, by the agent's names. Each one makes the start longer, so rare ones are left out."""
TRY_LIMIT_S = 30.0
READ_LIMIT_S = 60.0
MOST_READ_BYTES = 64 << 20
"""Bytes of text that are made of one recording."""
READER_OPTIONS = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
MOST_PROCESSES = 16
CLOCK_READINGS = 5


class JavaInstrumentation:
    """The agent of OpenTelemetry and a recording in each virtual machine that the command starts."""

    def __init__(self, command: Sequence[str], folder: Path, say: Say) -> None:
        """Installs the agent on first use; ``say`` reports that. ``folder`` is for recordings."""
        self._folder = folder / "java-recordings"
        self._missing: list[tuple[str, str]] = []
        self._recordings: list[JavaRecording] | None = None
        self._is_java_certain = command_runtimes(command) == (Runtime.JAVA,)
        self._own_agent = any(_is_opentelemetry(word) for word in command)
        self._agent: Path | None = None
        self._reader: Path | None = None
        self._options: list[str] = []
        self._java = find_java(command)
        self._clock_at_start = _clock_offset()
        if self._java is None:
            if self._is_java_certain:
                self._miss_both(f"no program java was found: {REMEDIES['maven']}")
            return
        if any(separator in f"{folder}{EVENTS}" for separator in "\"',"):
            self._miss("stacks", f"the path {folder} has quotes or commas, which the options of java can't hold")
        else:
            self._prepare_recorder(say)
        self._prepare_agent(say)

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns the options of the virtual machine, before those of the user, and the settings of the agent."""
        own_options = dict(own).get(OPTIONS, os.environ.get(OPTIONS, ""))
        options = list(self._options)
        settings: list[tuple[str, str]] = []
        is_own = self._own_agent or _is_opentelemetry(own_options) or user_exporter_settings(own)
        if self._agent is not None and not is_own:
            options.append(f"-javaagent:{self._agent}")
            settings = [("OTEL_JAVAAGENT_LOGGING", "none"), ("OTEL_INSTRUMENTATION_COMMON_DEFAULT_ENABLED", "false")]
            settings += [(f"OTEL_INSTRUMENTATION_{_variable(name)}_ENABLED", "true") for name in INSTRUMENTED]
        if not options:
            return []
        return [(OPTIONS, " ".join(filter(None, [*map(_quoted, options), own_options]))), *settings]

    def close(self) -> None:
        """Reads the recordings that the programs have left."""
        if self._recordings is not None:
            return
        self._recordings = []
        if self._java is None or self._reader is None or not self._options:
            return
        clock = _clock_between(self._clock_at_start, _clock_offset())
        files = recording_files(self._folder)
        for path in files[:MOST_PROCESSES]:
            with missing_on_failure("stacks", "a recording of a Java program", self._miss):
                self._recordings.append(self._read_file(self._java, path, clock))
        if len(files) > MOST_PROCESSES:
            self._miss("stacks", f"{len(files) - MOST_PROCESSES} recordings of Java programs were left out")
        if not files and self._is_java_certain:
            self._miss(
                "stacks", "no Java virtual machine left a recording; programs that were compiled ahead have none"
            )

    def has_evidence(self) -> bool:
        """Whether a program left a recording."""
        return bool(self._recordings)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds samples and pauses."""
        for one in self._recordings or []:
            with missing_on_failure("stacks", f"the recording of process {one.pid}", recording.add_missing_source):
                recording.add_stacks(one.pid, one.stacks, one.samples)
                recording.add_pauses(one.pid, one.pauses)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)

    def _prepare_recorder(self, say: Say) -> None:
        assert self._java is not None
        with missing_on_failure("stacks", "the reader of Java recordings", self._miss):
            self._reader = ensure_reader(say)
            self._folder.mkdir(mode=0o700)
            self._options = recorder_options(self._java, self._folder)

    def _prepare_agent(self, say: Say) -> None:
        with missing_on_failure("spans", "OpenTelemetry's agent for Java", self._miss):
            self._agent = ensure_agent(say)

    def _read_file(self, java: str, path: Path, clock: Callable[[int], int]) -> JavaRecording:
        command = [java, *READER_OPTIONS, "-cp", str(self._reader), READER, str(path), str(MOST_READ_BYTES)]
        done = run_child(command, READ_LIMIT_S, env=dict.fromkeys(OPTION_VARIABLES, ""))
        if done.code != 0 and not done.stdout:
            why = f"took longer than {READ_LIMIT_S:g} s" if done.timed_out else in_one_line(done.stderr, lines=1)
            raise EnvironmentProblem(f"a recording of a Java program can't be read: {why}")
        one = read_recording(done.stdout, clock)
        if one.is_cut:
            self._miss("stacks", f"the recording of process {one.pid} is long: its end was left out")
        return one

    def _miss(self, source: str, reason: str) -> None:
        self._missing.append((source, reason))

    def _miss_both(self, reason: str) -> None:
        for source in ("spans", "stacks"):
            self._miss(source, reason)


def recording_files(folder: Path) -> list[Path]:
    """Recordings that are not empty. A virtual machine that still runs may delete its own meanwhile."""
    files = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            with contextlib.suppress(OSError):
                state = path.lstat()
                if name.endswith(".jfr") and stat.S_ISREG(state.st_mode) and state.st_size:
                    files.append(path)
    return sorted(files)


def find_java(command: Sequence[str]) -> str | None:
    """Path of the program ``java`` that ``command`` starts, as far as the command and the environment tell."""
    if command and Path(command[0]).name == "java":
        return shutil.which(command[0])
    home = os.environ.get("JAVA_HOME", "")
    return (shutil.which(str(Path(home) / "bin" / "java")) if home else None) or shutil.which("java")


def recorder_options(java: str, folder: Path) -> list[str]:
    """Options with which ``java`` starts, records into ``folder``, and writes nothing to stdout.

    Raises :class:`EnvironmentProblem` where it has no flight recorder.
    """
    trial = folder / "trial"
    trial.mkdir(mode=0o700)
    reason = ""
    try:
        for quiet in QUIET_OPTIONS:
            words = [*map(_quoted, _record_into(trial, quiet))]
            env = {**dict.fromkeys(OPTION_VARIABLES, ""), OPTIONS: " ".join(words)}
            done = run_child([java, "-version"], TRY_LIMIT_S, env=env)
            if done.code == 0 and not done.stdout:
                return _record_into(folder, quiet)
            reason = done.stdout or done.stderr
    finally:
        shutil.rmtree(trial, ignore_errors=True)
    raise EnvironmentProblem(f"{java} can't record itself: {in_one_line(reason, lines=2, limit=200)}")


def _record_into(folder: Path, quiet: str) -> list[str]:
    # A folder in place of a file: each process makes a file of its own.
    start = f"-XX:StartFlightRecording=settings={EVENTS},filename={folder},dumponexit=true,disk=true,maxsize=256m"
    return [quiet, f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH},repository={folder}", start]


def _quoted(option: str) -> str:
    """An option as the virtual machine reads it from its variable, where blanks separate options."""
    return f'"{option}"' if any(letter.isspace() for letter in option) else option


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()


def _is_opentelemetry(options: str) -> bool:
    """Whether options of a virtual machine load an agent of OpenTelemetry, beside which a second one would do harm."""
    return any("otel" in word or "opentelemetry" in word for word in options.lower().split("-javaagent:")[1:])


def _clock_offset() -> tuple[int, int]:
    """A time of the wall clock, and how far it is ahead of the recording's clock: the closest of some readings."""
    readings = []
    for _ in range(CLOCK_READINGS):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, wall, wall - (before + after) // 2))
    return min(readings)[1:]


def _clock_between(start: tuple[int, int], end: tuple[int, int]) -> Callable[[int], int]:
    """Maps times of the wall clock to the recording's clock, by the offsets at both ends."""
    (began, first), (ended, last) = start, end
    length = max(ended - began, 1)
    return lambda wall: wall - first - (last - first) * min(max(wall - began, 0), length) // length
