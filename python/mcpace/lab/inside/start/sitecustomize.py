"""Instruments a server's interpreter with OpenTelemetry as it starts. mcpace puts this folder on PYTHONPATH.

The server's own packages come first: the packages of the overlay stand last on the path. Success or failure is written
to the file that MCPACE_INSIDE_REPORT names, and the server starts as usual. Programs that the server starts are not
instrumented. Pauses for the collection of garbage are written to files whose path MCPACE_INSIDE_PAUSES begins.
"""

import gc
import importlib.util
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
MOST_PAUSES = 65_536
PAUSE = struct.Struct("<QQ")
"""Beginning and end of a pause, in nanoseconds of the monotonic clock."""


class PauseFile:
    """The pauses of this process. A file in memory needs no lock and no system call while the collector runs."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.began = 0
        self.open_file()

    def open_file(self) -> None:
        """Begins a file for this process; without one, pauses are not kept."""
        self.count = 0
        self.memory = None
        try:
            file = os.open(f"{self.prefix}-{os.getpid()}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.ftruncate(file, MOST_PAUSES * PAUSE.size)
                self.memory = mmap.mmap(file, MOST_PAUSES * PAUSE.size)
            finally:
                os.close(file)
        except (OSError, ValueError):
            pass

    def note_collection(self, phase: str, info: object) -> None:
        """Called by the collector before and after each run."""
        now = time.perf_counter_ns()
        if phase == "start":
            self.began = now
        elif self.memory is not None and self.count < MOST_PAUSES and now - self.began >= SHORTEST_PAUSE_NS:
            PAUSE.pack_into(self.memory, self.count * PAUSE.size, self.began, now)
            self.count += 1


def watch_collections() -> None:
    """Writes pauses of this process, and of those that it forks, each to a file of its own."""
    prefix = os.environ.pop("MCPACE_INSIDE_PAUSES", "")
    if prefix:
        pauses = PauseFile(prefix)
        gc.callbacks.append(pauses.note_collection)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=pauses.open_file)


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
