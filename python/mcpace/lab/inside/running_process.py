"""Evidence about a server that runs already: samples of the stacks of its Python, Node.js and Java processes. Its
environment can't be changed any more, so there are no spans.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.inside.instrumentation import Variables
from mcpace.lab.inside.node_inspector import check_inspector
from mcpace.lab.inside.node_stacks import EvidenceLimits
from mcpace.lab.inside.process_facts import PROC, command_words, environment_value, process_runtime
from mcpace.lab.inside.running_java import JavaSampler, check_java
from mcpace.lab.inside.running_node import NodeSampler
from mcpace.lab.inside.running_python import PythonSampler, check_python
from mcpace.lab.inside.runtimes import Runtime
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.listening_sockets import listening_addresses, url_port
from mcpace.lab.processes.process_usage import process_tree, program_name
from mcpace.lab.targets import redact_command

LONGEST_COMMAND = 200
MOST_PROCESSES = 16
"""Processes of one runtime that are sampled."""
CLUSTER_WORKER = "NODE_UNIQUE_ID"
"""Variable of the processes that the module ``cluster`` of Node.js starts."""


class ProcessSampler(Protocol):
    """Samples a running process from its creation until it is closed."""

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        ...

    def resume(self) -> None:
        """Goes on sampling."""
        ...

    def end_sampling(self) -> None:
        """Takes the last samples, while the process runs. Ending twice is harmless."""
        ...

    def close(self) -> None:
        """Leaves the process as it was. Closing twice is harmless."""
        ...

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples, and the reasons why some are missing."""
        ...


@dataclass(frozen=True)
class SampledProcesses:
    """The processes of a server that are sampled."""

    python: list[int]
    """Processes that are sampled together with their descendants."""
    node: list[int]
    java: list[int]
    left_out: int
    """Number of processes beyond the limit, or whose inspector would have the port of another one's."""


class RunningProcess:
    """A process of the user's that is sampled from its creation until it is closed."""

    def __init__(self, pid: int, url: str, say: Say) -> None:
        """Attaches to ``pid``, which serves ``url``. Raises as :func:`check_process` does. ``say`` reports what is
        installed on first use.
        """
        found = check_process(pid, url)
        self.pid = pid
        command = _read_command(pid)
        self._missing = [
            (
                "spans",
                f"process {pid} was started without instrumentation, so its requests are unknown; "
                f"mcpace measure serve:{shlex.quote(command)} --inside shows them",
            )
        ]
        if found.left_out:
            self._missing.append(
                (
                    "stacks",
                    f"{found.left_out} more processes of the server were left out: at most {MOST_PROCESSES} are "
                    "sampled, and of Node.js those whose inspectors have ports of their own (--inspect-port)",
                )
            )
        self._samplers: list[ProcessSampler] = []
        limits = EvidenceLimits()
        with ExitStack() as stack:

            def add(sampler: ProcessSampler) -> None:
                stack.callback(sampler.close)
                self._samplers.append(sampler)

            for one in found.python:
                add(PythonSampler(one))
            for one in found.node:
                add(NodeSampler(one, url_port(url), limits))
            for one in found.java:
                add(JavaSampler(one, say))
            self._sources = stack.pop_all()

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns nothing: the process has its variables already."""
        return []

    def watch(self, pid: int) -> None:
        """Does nothing: the process is being sampled."""

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        for sampler in self._samplers:
            sampler.pause()

    def resume(self) -> None:
        """Goes on sampling."""
        for sampler in self._samplers:
            sampler.resume()

    def end_sampling(self) -> None:
        """Takes the last samples. Ending twice is harmless."""
        for sampler in self._samplers:
            sampler.end_sampling()

    def close(self) -> None:
        """Ends the sampling of all processes. Closing twice is harmless."""
        # An interrupt would leave inspectors open and recordings running.
        with defer_interrupt():
            self._sources.close()

    def has_evidence(self) -> bool:
        """Always true: where there are no samples, the report has the reason."""
        return True

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples, and the reason why there are no spans."""
        for sampler in self._samplers:
            sampler.add_to(recording)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)


def check_process(pid: int, url: str) -> SampledProcesses:
    """The processes of the server that ``pid`` leads.

    Raises :class:`UsageProblem` where there is no such process, where it belongs to another user (but for root) or
    serves something else, and where none of its programs can be sampled. Raises :class:`LabError` where the kernel
    forbids reading it. Nothing is sent to the processes.
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
    _check_address(pid, url)
    found = _find_processes(pid, url_port(url))
    for one in found.python:
        check_python(one)
    for one in found.java:
        check_java(one)
    return _with_own_inspectors(found, url_port(url))


def _with_own_inspectors(found: SampledProcesses, served: int) -> SampledProcesses:
    """Without the processes of Node.js that would open their inspectors at the port of another one."""
    ports: dict[int, int] = {}
    for one in found.node:
        port = check_inspector(one, served)
        # A process whose inspector is open needs no port, and has its own number here.
        ports.setdefault(-one if port is None else port, one)
    node = list(ports.values())
    return replace(found, node=node, left_out=found.left_out + len(found.node) - len(node))


def _find_processes(pid: int, port: int) -> SampledProcesses:
    """The processes that serve ``port``, and all Python processes, which are sampled from outside.

    Where none is known to listen at the port, all processes serve it. Raises :class:`UsageProblem` where none of them
    can be sampled.
    """
    tree = {one: process_runtime(one) for one in sorted(process_tree(pid))}
    listening = [one for one in tree if port in {own for _, own in listening_addresses([one])}]
    serving = listening or list(tree)
    # The first process of a cluster listens, and its workers answer.
    workers = [one for one, runtime in tree.items() if runtime is Runtime.NODE and _is_worker(one)]
    node = workers or [one for one in serving if tree[one] is Runtime.NODE]
    java = [one for one in serving if tree[one] is Runtime.JAVA]
    python = [pid] if Runtime.PYTHON in tree.values() else []
    if not python and not node and not java:
        name = program_name(serving[0] if listening else pid) or "a program that can't be read"
        raise UsageProblem(
            f"--pid: process {pid} runs {name}, and only Python, Node.js and Java can be sampled without a restart"
        )
    left_out = max(len(node) - MOST_PROCESSES, 0) + max(len(java) - MOST_PROCESSES, 0)
    return SampledProcesses(python, node[:MOST_PROCESSES], java[:MOST_PROCESSES], left_out)


def _is_worker(pid: int) -> bool:
    return environment_value(pid, CLUSTER_WORKER) is not None


def _check_address(pid: int, url: str) -> None:
    """Raises :class:`UsageProblem` where the process doesn't listen at the port of ``url``."""
    port = url_port(url)
    ports = [own for _, own in listening_addresses(process_tree(pid))]
    if ports and port not in ports:
        raise UsageProblem(f"--pid: process {pid} listens at port {ports[0]}, not at port {port} of the target")


def _read_command(pid: int) -> str:
    """The command line of the process, without secrets."""
    words = command_words(pid)
    command = redact_command(shlex.join(words)) if words else "COMMAND"
    return command if len(command) <= LONGEST_COMMAND else "COMMAND"
