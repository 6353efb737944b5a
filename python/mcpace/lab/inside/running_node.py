"""Samples of the stack of a program of Node.js that runs already, by V8's profiler in it.

Design constraint: The process is left as it was: the profiler ends, and so does an inspector that was opened here.
"""

from __future__ import annotations

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.inside.node_evidence import DAMAGED, ProgramEvidence, package_folder
from mcpace.lab.inside.node_inspector import NodeInspector
from mcpace.lab.inside.node_stacks import EvidenceLimits, SampledStacks

SAMPLE_PERIOD_US = 1000
SCRIPT = "(() => { try { return require('fs').realpathSync(process.argv[1]); } catch { return ''; } })()"
"""Path of the program's script; empty where it has none."""


class NodeSampler:
    """Samples the main thread of a process from its creation until it is closed."""

    def __init__(self, pid: int, served: int, limits: EvidenceLimits) -> None:
        """``served`` is the port of MCP. Raises :class:`LabError` where the inspector can't be opened."""
        self._pid = pid
        self._is_sampling = False
        self._inspector = NodeInspector(pid, served)
        try:
            session = self._inspector.session
            package = package_folder(str(session.evaluate(SCRIPT)))
            self._evidence = ProgramEvidence(pid, SampledStacks(package, limits))
            session.call("Profiler.enable")
            session.call("Profiler.setSamplingInterval", interval=SAMPLE_PERIOD_US)
            session.call("Profiler.start")
            self._is_sampling = True
        except BaseException:
            self._inspector.close()
            raise

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        if self._is_sampling:
            self._is_sampling = False
            try:
                self._evidence.stacks.add_profile(self._inspector.session.call("Profiler.stop")["profile"])
            except LabError as problem:
                self._miss(f"{problem}; its later samples are missing")
            except DAMAGED:
                self._miss(f"a profile of process {self._pid} is damaged")

    def resume(self) -> None:
        """Goes on sampling."""
        if not self._is_sampling and not self._evidence.missing:
            try:
                self._inspector.session.call("Profiler.start")
                self._is_sampling = True
            except LabError as problem:
                self._miss(f"{problem}; its later samples are missing")

    def end_sampling(self) -> None:
        """Takes the last samples. Ending twice is harmless."""
        self.pause()

    def close(self) -> None:
        """Ends the profiler, and closes the inspector if it was opened here. Closing twice is harmless."""
        self.end_sampling()
        if reason := self._inspector.close():
            self._miss(reason)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples."""
        self._evidence.add_to(recording)

    def _miss(self, reason: str) -> None:
        self._evidence.missing.append(("stacks", reason))
