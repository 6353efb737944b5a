"""Evidence about a server that runs already: py-spy's samples of its stacks. Its environment can't be changed any more,
so there are no spans.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from mcpace import _core
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.inside.instrumentation import Variables
from mcpace.lab.inside.python_runtime import SAMPLE_PERIOD_S
from mcpace.lab.processes.listening_sockets import listening_addresses, url_port
from mcpace.lab.processes.process_usage import process_tree, program_name
from mcpace.lab.targets import redact_command

PROC = Path("/proc")
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
LONGEST_COMMAND = 200


class RunningProcess:
    """A process of the user's that is sampled from its creation until it is closed."""

    def __init__(self, pid: int, url: str) -> None:
        """Attaches to ``pid``, which serves ``url``. Raises as :func:`check_process` does."""
        check_process(pid, url)
        self.pid = pid
        command = _read_command(pid)
        self._missing = (
            f"process {pid} was started without instrumentation, so its requests are unknown; "
            f"mcpace measure serve:{shlex.quote(command)} --inside shows them"
        )
        self._sampler = _core.StackSampler(pid, period_s=SAMPLE_PERIOD_S)
        self._samples: _core.Recording | None = None

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns nothing: the process has its variables already."""
        return []

    def watch(self, pid: int) -> None:
        """Does nothing: the process is being sampled."""

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        self._sampler.pause()

    def resume(self) -> None:
        """Goes on sampling."""
        self._sampler.resume()

    def end_sampling(self) -> None:
        """Stops the sampler. Ending twice is harmless."""
        if self._samples is None:
            self._samples = self._sampler.stop()

    def close(self) -> None:
        """Stops the sampler. Closing twice is harmless."""
        self.end_sampling()

    def has_evidence(self) -> bool:
        """Whether a stack was sampled: one was, or the report says why not."""
        return True

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples, and the reason why there are no spans."""
        if self._samples is not None:
            recording.add_recording(self._samples)
        recording.add_missing_source("spans", self._missing)


def check_process(pid: int, url: str) -> None:
    """Raises :class:`UsageProblem` where there is no such process, where it belongs to another user (but for root) or
    serves something else, and where no Python runs in it. Raises :class:`LabError` where the kernel forbids reading it.
    """
    if sys.platform != "linux":
        raise LabError(f"--pid: processes can be looked into on Linux only, and this is {sys.platform}")
    try:
        owner = (PROC / str(pid)).stat().st_uid
    except OSError:
        raise UsageProblem(f"--pid: there is no process {pid}") from None
    if os.geteuid() not in (owner, 0):
        raise UsageProblem(f"--pid: process {pid} belongs to another user, and mcpace looks only into your own")
    if pid == os.getpid():
        raise UsageProblem(f"--pid: process {pid} is mcpace itself")
    tree = process_tree(pid)
    if not any(program_name(one).startswith("python") for one in tree):
        name = program_name(pid) or "a program that can't be read"
        raise UsageProblem(f"--pid: process {pid} runs {name}, and only Python can be sampled without a restart")
    try:
        # The kernel asks for the same permission as for reading stacks.
        os.close(os.open(PROC / str(pid) / "mem", os.O_RDONLY))
    except PermissionError as error:
        scope = SCOPE.read_text().strip() if SCOPE.exists() else ""
        setting = f" (kernel.yama.ptrace_scope is {scope})" if scope else ""
        raise LabError(
            f"--pid: the kernel doesn't let mcpace read process {pid}{setting}: let mcpace start the program "
            "(serve:COMMAND --inside), or run mcpace as root"
        ) from error
    _check_address(pid, url)


def _check_address(pid: int, url: str) -> None:
    """Raises :class:`UsageProblem` where the process doesn't listen at the port of ``url``."""
    port = url_port(url)
    ports = [own for _, own in listening_addresses(process_tree(pid))]
    if ports and port not in ports:
        raise UsageProblem(f"--pid: process {pid} listens at port {ports[0]}, not at port {port} of the target")


def _read_command(pid: int) -> str:
    """The command line of the process, without secrets."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        words = []
    command = redact_command(shlex.join(words)) if words else "COMMAND"
    return command if len(command) <= LONGEST_COMMAND else "COMMAND"
