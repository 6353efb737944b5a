"""Instruments Java programs with OpenTelemetry's agent, and records their stacks.

JDK Flight Recorder records waits and pauses. async-profiler samples the threads that run into the same recording. It
has samples of functions of the virtual machine, such as the hash of a certificate, which JDK Flight Recorder has not.
Where there is no async-profiler, JDK Flight Recorder samples as well.

Design constraint: A virtual machine that does not know an option does not start. The options are tried first with the
program ``java`` that the command starts. A command that does not tell which one it starts gets no options.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.instrumentation import Variables, missing_on_failure, user_exporter_settings
from mcpace.lab.inside.java_reader import (
    NO_OPTIONS,
    OPTIONS,
    RecordingReader,
    add_recording,
    clock_between,
    clock_offset,
    has_opentelemetry_agent,
)
from mcpace.lab.inside.java_recording import JavaRecording
from mcpace.lab.inside.java_tools import ensure_agent, ensure_profiler, ensure_reader
from mcpace.lab.inside.runtimes import started_programs
from mcpace.lab.paths import cache_folder
from mcpace.lab.processes.child_processes import run_child

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
PROFILER_INTERVAL = "2ms"
"""Processor time between two samples, as ``java_recording.PERIOD_NS`` has it."""
PATH_CHANGES = re.compile(r"PATH=.*|-[a-z]*[il][a-z]*|--login|--ignore-environment")
"""Words of env and of login shells by which a program is not found in the PATH of the environment."""
TRY_LIMIT_S = 30.0
MOST_PROCESSES = 16
READERS = 2
"""Recordings that are read at one time."""


class JavaInstrumentation:
    """The agent of OpenTelemetry and a recording in each virtual machine that the command starts."""

    def __init__(self, command: Sequence[str], folder: Path, say: Say) -> None:
        """``say`` reports the installation of the agent on first use. ``folder`` is for recordings."""
        self._command = list(command)
        self._say = say
        self._folder = folder / "java-recordings"
        self._missing: list[tuple[str, str]] = []
        self._recordings: list[JavaRecording] | None = None
        self._own_agent = any(has_opentelemetry_agent(word) for word in command)
        self._agent: Path | None = None
        self._reader: Path | None = None
        self._options: dict[str | None, list[str]] = {}
        """Options that record, for each program ``java`` that was tried."""
        self._clock_at_start = clock_offset()

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns the options of the virtual machine, before those of the user, and the settings of the agent.

        Tries the options and installs the agent on first use.
        """
        java = find_java(self._command, own)
        if java not in self._options:
            self._options[java] = []
            self._prepare(java)
        own_options = dict(own).get(OPTIONS, os.environ.get(OPTIONS, ""))
        options = list(self._options[java])
        settings: list[tuple[str, str]] = []
        is_own = self._own_agent or has_opentelemetry_agent(own_options) or user_exporter_settings(own)
        if java is not None and self._agent is not None and not is_own:
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
        java = next((java for java, options in self._options.items() if options), None)
        if java is None or self._reader is None:
            return
        clock = clock_between(self._clock_at_start, clock_offset())
        files = recording_files(self._folder)
        # Each one is read by a virtual machine of its own, whose start takes most of the time.
        with ThreadPoolExecutor(READERS) as readers:
            reader = RecordingReader(java, self._reader, self._miss)
            has_agent = self._agent is not None
            read = readers.map(lambda path: reader.read(path, clock, has_agent=has_agent), files[:MOST_PROCESSES])
            self._recordings += [one for one in read if one is not None]
        if len(files) > MOST_PROCESSES:
            self._miss("stacks", f"{len(files) - MOST_PROCESSES} recordings of Java programs were left out")
        if not files:
            self._miss("stacks", f"no Java virtual machine left a recording, though the command starts {java}")

    def has_evidence(self) -> bool:
        """Whether a program left a recording."""
        return bool(self._recordings)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds samples and pauses."""
        for one in self._recordings or []:
            add_recording(one, recording)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)

    def _prepare(self, java: str | None) -> None:
        if java is None:
            for source in ("spans", "stacks"):
                self._miss(source, _unknown_java(self._command))
            return
        if any(separator in f"{self._folder}{EVENTS}{cache_folder()}" for separator in "\"',"):
            self._miss("stacks", f"the path {self._folder} has quotes or commas, which the options of java can't hold")
        else:
            with missing_on_failure("stacks", "the reader of Java recordings", self._miss):
                self._reader = ensure_reader(self._say)
                self._folder.mkdir(mode=0o700, exist_ok=True)
                profiler = None
                with missing_on_failure("stacks", "async-profiler", self._miss):
                    profiler = ensure_profiler(self._say)
                self._options[java] = recorder_options(java, self._folder, profiler)
        with missing_on_failure("spans", "OpenTelemetry's agent for Java", self._miss):
            self._agent = ensure_agent(self._say)

    def _miss(self, source: str, reason: str) -> None:
        self._missing.append((source, reason))


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


def find_java(command: Sequence[str], own: Variables) -> str | None:
    """Absolute path of the program ``java`` that ``command`` starts with the variables ``own`` of the user.

    ``None`` where the command does not tell: it starts another program, which may choose any ``java``.
    """
    path = {**os.environ, **dict(own)}.get("PATH")
    for words, program in started_programs(command):
        if Path(program).name == "java":
            before = takewhile(lambda word: word != "java", " ".join(words).split())
            if program == "java" and any(map(PATH_CHANGES.fullmatch, before)):
                return None
            found = shutil.which(program, path=path)
            return str(Path.cwd() / found) if found is not None else None
    return None


def _unknown_java(command: Sequence[str]) -> str:
    """The reason why :func:`find_java` found nothing."""
    if any(Path(program).name == "java" and not shutil.which(program) for _, program in started_programs(command)):
        return f"no program java was found: {REMEDIES['maven']}"
    return (
        "the command does not tell which java it starts, if any, and a java that does not know an option does not "
        "start: let the command name it, as in java -jar server.jar"
    )


def recorder_options(java: str, folder: Path, profiler: Path | None) -> list[str]:
    """Options with which ``java`` starts, records into ``folder``, and writes nothing to stdout.

    ``profiler`` is the library of async-profiler, which is left out where ``java`` does not start with it. Raises
    :class:`EnvironmentProblem` where ``java`` has no flight recorder.
    """
    trial = folder / "trial"
    trial.mkdir(mode=0o700)
    reason = ""
    try:
        for sampler in (profiler, None) if profiler is not None else (None,):
            for quiet in QUIET_OPTIONS:
                words = [*map(_quoted, _record_into(trial, quiet, sampler))]
                env = {**NO_OPTIONS, OPTIONS: " ".join(words)}
                done = run_child([java, "-version"], TRY_LIMIT_S, env=env)
                if done.code == 0 and not done.stdout:
                    return _record_into(folder, quiet, sampler)
                reason = done.stdout or done.stderr
    finally:
        shutil.rmtree(trial, ignore_errors=True)
    raise EnvironmentProblem(f"{java} can't record itself: {in_one_line(reason, lines=2, limit=200)}")


def _record_into(folder: Path, quiet: str, profiler: Path | None) -> list[str]:
    """``profiler`` starts JDK Flight Recorder itself, without its samples."""
    if profiler is not None:
        sampling = f"event=cpu,interval={PROFILER_INTERVAL},log=none"
        start = f"-agentpath:{profiler}=start,{sampling},jfrsync={EVENTS},file={folder}/%p.jfr"
    else:
        # A folder in place of a file: each process makes a file of its own.
        start = f"-XX:StartFlightRecording=settings={EVENTS},filename={folder},dumponexit=true,disk=true,maxsize=256m"
    return [quiet, f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH},repository={folder}", start]


def _quoted(option: str) -> str:
    """An option as the virtual machine reads it from its variable, where blanks separate options."""
    return f'"{option}"' if any(letter.isspace() for letter in option) else option


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()
