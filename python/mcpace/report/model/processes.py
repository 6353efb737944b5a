"""The parts of a Run that list the MCP servers which the hosts on this machine started.

Design constraint: data only. Commands have no secrets: the lab redacts them.
"""

from __future__ import annotations

from typing import Literal, get_args

from mcpace.report.model.base import Model, Number, Whole

ProcessCode = Literal["orphaned-server", "doubled-start", "never-reaped"]
CODES: tuple[ProcessCode, ...] = get_args(ProcessCode)


class ServerProcess(Model):
    """One server over stdio, with the processes that it started; or one that ended and was not reaped."""

    pid: Whole
    command: str
    server: str = ""
    """Name of the server in the configuration; empty where no given configuration has its command."""
    configuration: str = ""
    """Path of that configuration."""
    parent: Whole
    parent_command: str = ""
    age_s: Number
    memory_bytes: Whole
    """Resident memory of the server and its descendants. Pages that processes share are counted for each of them."""
    processes: Whole = 1
    """Number of processes: the server and its descendants."""
    has_ended: bool = False
    """Whether the process has ended, and its parent has not read its exit code (a zombie)."""


class ProcessFinding(Model):
    """Servers that a host left behind, or started more often than once."""

    code: ProcessCode
    pids: list[Whole]


class HostProcesses(Model):
    """The servers over stdio of one user on this machine."""

    servers: list[ServerProcess] = []
    findings: list[ProcessFinding] = []
    ended: list[Whole] = []
    """Process ids of the servers that the user had mcpace end."""
