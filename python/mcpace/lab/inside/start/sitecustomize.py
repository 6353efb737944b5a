"""Instruments a server's interpreter with OpenTelemetry as it starts. mcpace puts this folder on PYTHONPATH.

The server's own packages come first: the packages of the overlay stand last on the path. Success or failure is written
to the file that MCPACE_INSIDE_REPORT names, and the server starts as usual. Programs that the server starts are not
instrumented. Pauses for the collection of garbage are written to files whose path MCPACE_INSIDE_PAUSES begins, and the
timers that code waits for to files whose path MCPACE_INSIDE_TIMERS begins.
"""

import functools
import gc
import importlib.util
import itertools
import json
import mmap
import os
import struct
import sys
import time
from pathlib import Path

OLDEST_PYTHON = (3, 10)
WRAPPERS = {"conda", "hatch", "pdm", "pipenv", "pipx", "poetry", "rye"}
"""Programs in Python that start the server: ``poetry run python server.py``."""
STARTED = "started"
"""Line of the report where the instrumentation runs."""
HERE = Path(__file__).resolve().parent
SHORTEST_PAUSE_NS = 50_000
PAUSE = struct.Struct("<QQ")
"""Beginning and end of a pause, in nanoseconds of the monotonic clock."""
SHORTEST_TIMER_NS = 1_000_000
TIMER = struct.Struct("<QQQ")
"""When a timer was set and when it went off, in nanoseconds of the monotonic clock, and the number of its stack."""
STACK = struct.Struct("<8192s")
MOST_RECORDS = 65_536
MOST_STACKS = 500
MOST_FRAMES = 96


class RecordFile:
    """Records of this process. A file in memory needs no lock and no system call, and no descriptor that stays open."""

    def __init__(self, prefix: str, record: struct.Struct, most: int) -> None:
        self.prefix = prefix
        self.record = record
        self.most = most
        self.open_file()

    def open_file(self) -> None:
        """Begins a file for this process; without one, records are not kept."""
        self.numbers = itertools.count()
        self.memory = None
        size = self.most * self.record.size
        try:
            file = os.open(f"{self.prefix}-{os.getpid()}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.ftruncate(file, size)
                self.memory = mmap.mmap(file, size)
            finally:
                os.close(file)
        except (OSError, ValueError):
            pass

    def add(self, *fields: object):
        """Adds a record, and returns its number; ``None`` where there is no room. Other threads may do so meanwhile."""
        number = next(self.numbers)
        # Another thread may end the file between two reads of the attribute.
        memory = self.memory
        if memory is None or number >= self.most:
            return None
        self.record.pack_into(memory, number * self.record.size, *fields)
        return number


class Collections:
    """The pauses of this process for the collection of garbage."""

    def __init__(self, prefix: str) -> None:
        self.began = 0
        self.file = RecordFile(prefix, PAUSE, MOST_RECORDS)

    def note_collection(self, phase: str, info: object) -> None:
        """Called by the collector before and after each run."""
        now = time.perf_counter_ns()
        if phase == "start":
            self.began = now
        elif now - self.began >= SHORTEST_PAUSE_NS:
            self.file.add(self.began, now)


class Timers:
    """The timers that code of this process waited for, and the stacks that waited."""

    def __init__(self, prefix: str) -> None:
        self.times = RecordFile(f"{prefix}-times", TIMER, MOST_RECORDS)
        self.stacks = RecordFile(f"{prefix}-stacks", STACK, MOST_STACKS)
        self.numbers: dict[object, object] = {}

    def reopen_files(self) -> None:
        """Begins files for a process that was forked."""
        self.times.open_file()
        self.stacks.open_file()
        self.numbers = {}

    def note_wait(self, function: str, began: int, frame) -> None:
        """The code of ``frame`` has waited in ``function`` since ``began``, for a timer that went off."""
        now = time.perf_counter_ns()
        if now - began >= SHORTEST_TIMER_NS:
            stack = self.stack_number(function, frame)
            if stack is not None:
                self.times.add(began, now, stack)

    def stack_number(self, function: str, frame):
        """The number of the stack in which ``frame`` called ``function``; ``None`` where there is no room for it."""
        calls = []
        while frame is not None and len(calls) < MOST_FRAMES:
            calls.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        key = (function, *calls)
        if key not in self.numbers:
            if len(self.numbers) >= MOST_STACKS:
                # If some timers were missing, others of a loop in the background would look like waits of a call.
                self.times.memory = None
                return None
            self.numbers[key] = self.stacks.add(stack_text(function, calls))
        return self.numbers[key]


def stack_text(function: str, calls) -> bytes:
    """Function, file and line of each call in JSON, without the outermost calls where all of them are too long."""
    frames = [(function, __file__, 0)]
    frames += [(getattr(code, "co_qualname", code.co_name), code.co_filename, line) for code, line in calls]
    text = json.dumps(frames).encode()
    while len(text) > STACK.size:
        frames = frames[: len(frames) // 2]
        text = json.dumps(frames).encode()
    return text


def sleep(watched, *seconds: float) -> None:
    """Waits as ``time.sleep``, and notes that it did. Sampled stacks show the name of this function."""
    began = time.perf_counter_ns()
    watched.original(*seconds)
    if seconds[0] > 0:
        watched.timers.note_wait("sleep", began, sys._getframe(1))


class WatchedSleep:
    """Stands for ``time.sleep``. Like the original, and unlike a function, it is no method where a class names it."""

    __module__ = "time"

    def __init__(self, original, timers: Timers) -> None:
        self.original = original
        self.timers = timers
        functools.update_wrapper(self, original)

    __call__ = sleep

    def __reduce__(self) -> str:
        return "sleep"


def watch_collections() -> None:
    """Writes pauses of this process, and of those that it forks, each to a file of its own."""
    prefix = os.environ.pop("MCPACE_INSIDE_PAUSES", "")
    if prefix:
        collections = Collections(prefix)
        gc.callbacks.append(collections.note_collection)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=collections.file.open_file)


def watch_timers() -> None:
    """Writes the timers that this process waits for, and those of processes that it forks.

    Time-outs that are cancelled raise an exception in the functions that wait, and are not noted.
    """
    prefix = os.environ.pop("MCPACE_INSIDE_TIMERS", "")
    if not prefix:
        return
    import asyncio

    timers = Timers(prefix)
    original = asyncio.sleep

    @functools.wraps(original)
    async def asyncio_sleep(delay, *rest, **named):
        began = time.perf_counter_ns()
        result = await original(delay, *rest, **named)
        if delay > 0:
            timers.note_wait("asyncio.sleep", began, sys._getframe(1))
        return result

    asyncio.sleep = asyncio.tasks.sleep = asyncio_sleep
    time.sleep = WatchedSleep(time.sleep, timers)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=timers.reopen_files)


def run_shadowed_module() -> None:
    """Runs the sitecustomize of the server's environment, which this one stands before."""
    for folder in sys.path:
        path = Path(folder) / "sitecustomize.py"
        if path.is_file():
            spec = importlib.util.spec_from_file_location("sitecustomize", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


def start_instrumentation() -> None:
    """Loads OpenTelemetry from the overlay and instruments the libraries that the server has."""
    overlay = os.environ.pop("MCPACE_INSIDE_OVERLAY", "")
    report = os.environ.pop("MCPACE_INSIDE_REPORT", "")
    original = os.environ.pop("MCPACE_INSIDE_PYTHONPATH", "")
    if original:
        os.environ["PYTHONPATH"] = original
    else:
        os.environ.pop("PYTHONPATH", None)
    if not overlay:
        return
    try:
        require_fitting_interpreter()
        sys.path.append(overlay)
        from opentelemetry.instrumentation.auto_instrumentation import initialize

        initialize(swallow_exceptions=False)
        outcome = STARTED
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"[:500]
    try:
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(outcome + "\n")
    except OSError:
        pass


def require_fitting_interpreter() -> None:
    """Raises RuntimeError where the packages of the overlay are for other interpreters."""
    name, version = sys.implementation.name, sys.version_info[:2]
    if name != "cpython" or version < OLDEST_PYTHON:
        own = f"{name} {version[0]}.{version[1]}"
        raise RuntimeError(f"the server runs {own}, and the instrumentation is for CPython 3.10 and later")


def is_wrapper() -> bool:
    """Whether this program only starts the server, which then needs the variables."""
    return any(Path(word).name in WRAPPERS for word in getattr(sys, "orig_argv", [])[1:4])


sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE]
run_shadowed_module()
if not is_wrapper():
    start_instrumentation()
    watch_collections()
    watch_timers()
