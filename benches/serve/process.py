"""A server's process tree, which is started in a new session, observed through /proc, and always ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

START_LIMIT_S = 60
STOP_LIMIT_S = 3
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Process:
    """A server on a free port, which is ended with all its children at the end of the `with` block."""

    def __init__(self, command: tuple[str, ...], variables: tuple[tuple[str, str], ...] = ()) -> None:
        self.port = free_port()
        address = f"127.0.0.1:{self.port}"
        self.program = command[0]
        arguments = [part.format(port=self.port, address=address) for part in command]
        environment = os.environ | {"NODE_ENV": "production"} | dict(variables)
        self.child = subprocess.Popen(
            arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(STOP_LIMIT_S)
        # Also after the leader has ended, because its children may still run.
        self.signal(signal.SIGKILL)
        self.child.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, number)

    def wait_until_it_listens(self) -> None:
        """Waits until the server accepts a connection."""
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit:
            if self.child.poll() is not None:
                raise RuntimeError(f"{self.program} ended with {self.child.returncode} before it listened")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.program} did not listen within {START_LIMIT_S} s")

    def cpu_s(self) -> float:
        """CPU time of the tree so far, user and system."""
        # Fields 14 and 15 of stat(5); the list begins with the state, which is field 3.
        return sum(int(fields[11]) + int(fields[12]) for fields in self.stats()) / TICKS_PER_SECOND

    def rss_bytes(self) -> int:
        """Resident memory of the tree."""
        return sum(int(fields[21]) for fields in self.stats()) * os.sysconf("SC_PAGE_SIZE")

    def stats(self) -> list[list[str]]:
        """The fields of /proc/PID/stat from the state on, for each process of the session."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name of a process may contain spaces and brackets, so the fields are those after the last bracket.
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.child.pid:
                    found.append(fields)
        return found


def pinned(command: tuple[str, ...], core: int) -> tuple[str, ...]:
    """The command on one core."""
    return ("taskset", "--cpu-list", str(core), *command)


def run_to_end(command: tuple[str, ...], folder: Path) -> None:
    """Runs a build step. If this program is ended meanwhile, all processes of the step are ended, too."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True) as child:
        try:
            status = child.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {status}")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
