"""Samples of the stacks of a Python program that runs already, by py-spy's library."""

from __future__ import annotations

import os
from pathlib import Path

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.inside.process_facts import PROC
from mcpace.lab.inside.python_runtime import SAMPLE_PERIOD_S

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


class PythonSampler:
    """Samples a process and its descendants from its creation until it is closed."""

    def __init__(self, pid: int) -> None:
        self._sampler = _core.StackSampler(pid, period_s=SAMPLE_PERIOD_S)
        self._samples: _core.Recording | None = None

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

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples."""
        if self._samples is not None:
            recording.add_recording(self._samples)


def check_python(pid: int) -> None:
    """Raises :class:`LabError` where the kernel forbids reading the process."""
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
