"""The servers over stdio that the hosts of this machine started, and those that a host left behind.

A server is a process whose standard input and output are pipes or sockets, and whose command a given configuration has,
or whose program has ``mcp`` in its name. Findings:

- ``orphaned-server``: no process holds the other end of the server's standard input, and the server did not end within
  :data:`GRACE_S` of the first look. The host has ended, or has dropped the server.
- ``doubled-start``: one host runs several servers with the same command and the same working directory.
- ``never-reaped``: a server has ended, and its host has not read the exit code.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flight_wrap import own_command
from mcpace.lab.machine import new_run
from mcpace.lab.processes.process_table import (
    ProcessEntry,
    input_identity,
    input_state,
    is_pipe_or_socket,
    is_same_process,
    read_process_table,
)
from mcpace.lab.processes.runners import INTERPRETERS, runs_another, split_title
from mcpace.lab.processes.strays import end_processes
from mcpace.lab.progress import Progress
from mcpace.lab.server_configuration import read_configuration
from mcpace.lab.targets import redact_command
from mcpace.report.model.processes import HostProcesses, ProcessFinding, ServerProcess
from mcpace.report.model.run import Run

GRACE_S = 2.0
"""Seconds for a server to end after the end of its input. Servers that are being shut down are not orphans."""
MCP_NAME = re.compile(r"(?<![a-z])mcp(?![a-z])|modelcontextprotocol", re.IGNORECASE)
MOST_RUNNER_WORDS = 6
"""Words after a package runner that may be its own and the package's: ``tool run --from PACKAGE NAME``."""
FILLERS = ("-y", "--yes", "--quiet", "-q")
"""Options that package runners drop from the command of the process that they become."""
KERNEL_NAME = 15
"""Characters of a process's name that the kernel keeps."""


@dataclass(frozen=True)
class ConfiguredCommand:
    """The command of one server in a host's configuration."""

    server: str
    configuration: Path
    words: tuple[str, ...]

    def matches(self, command: Sequence[str]) -> bool:
        """Whether a process runs this command: by itself, or as a script or a package that a program runs."""
        own = [word for word in self.words[1:] if word not in FILLERS]
        theirs = [word for word in split_title(own_command(command)) if word not in FILLERS]
        before = theirs[: max(len(theirs) - len(own), 0)]
        if theirs[len(before) :] != own:
            return False
        if before == ["npm", "exec"]:  # npx becomes it
            return Path(self.words[0]).name == "npx"
        return bool(before) and Path(before[-1]).name == Path(self.words[0]).name


def list_processes(configurations: Sequence[Path], host: int | None, progress: Progress) -> Run:
    """Lists the servers of this user; with ``host``, those that the process ``host`` and its descendants started.

    Raises :class:`UsageProblem` for a configuration that can't be read and for a process that doesn't exist, and
    :class:`EnvironmentProblem` where the system is not supported.
    """
    commands = [command for path in configurations for command in configured_commands(path, progress)]
    table = read_process_table()
    if host is not None and (host not in table or table[host].has_ended):
        raise UsageProblem(f"--pid: you have no running process {host}")
    tops = [entry for entry in _server_tops(table, commands, host) if host is None or host in _ancestors(entry, table)]
    running = [entry for entry in tops if not entry.has_ended]
    without_peer = [entry for entry in running if input_state(entry.pid) == "closed"]
    orphans = _wait_for_end(without_peer)
    tops = [entry for entry in tops if entry not in without_peer or entry in orphans]
    result = new_run("processes", {"configurations": [path.name for path in configurations], "host": host})
    result.processes = HostProcesses(
        servers=[_describe(entry, table, commands) for entry in tops],
        findings=[
            *_finding_of_each("orphaned-server", orphans),
            *_doubled_starts([entry for entry in running if entry not in without_peer]),
            *_finding_of_each("never-reaped", [entry for entry in tops if entry.has_ended]),
        ],
    )
    return result


def configured_commands(path: Path, progress: Progress) -> list[ConfiguredCommand]:
    """The commands of a configuration. A command that can't be resolved is noted and left out."""
    found = []
    configuration = read_configuration(path)
    for name, members in configuration.entries.items():
        if not isinstance(members, dict) or members.get("command") is None:
            continue
        needed = {key: members[key] for key in ("command", "args") if key in members}
        try:
            server = replace(configuration, entries={name: needed}).server(name)
        except UsageProblem as problem:
            progress.note(f"{problem}; its processes are not named")
            continue
        found.append(ConfiguredCommand(name, path, server.command))
    return found


def end_servers(pids: Iterable[int], listed: Run) -> list[int]:
    """Ends servers of a list with their descendants: SIGTERM, and SIGKILL a few seconds later.

    Returns the servers that were ended. A server that has ended meanwhile, and one whose input has a peer again, is
    left out.
    """
    assert listed.processes is not None, "the run is a list of processes"
    table = read_process_table()
    known = {one.pid: one for one in listed.processes.servers}
    handles: list[int] = []
    ended = []
    for pid in pids:
        entry, one = table.get(pid), known.get(pid)
        # Another process may have the id now.
        if entry is None or one is None or _command_words(entry) != one.command or input_state(pid) != "closed":
            continue
        opened = [handle for one in _tree(pid, table) if (handle := _open_process(one)) is not None]
        handles += opened
        ended += [pid] if opened else []
    end_processes(handles)
    return ended


def _open_process(entry: ProcessEntry) -> int | None:
    """A descriptor of the process (pidfd_open(2)); ``None`` where it has ended."""
    if sys.platform != "linux":
        return None
    try:
        handle = os.pidfd_open(entry.pid)
    except OSError:
        return None
    if is_same_process(entry):
        return handle
    os.close(handle)
    return None


def _server_tops(
    table: dict[int, ProcessEntry], commands: Sequence[ConfiguredCommand], host: int | None
) -> list[ProcessEntry]:
    """The servers, without the processes that a server started, in the order of their parents and starts."""
    own = {os.getpid(), *(entry.pid for entry in _ancestor_entries(os.getpid(), table))}
    servers = {
        pid for pid, entry in table.items() if pid not in own and not entry.has_ended and _is_server(entry, commands)
    }
    # A package runner and the server that it starts share their input. A host has an input of its own.
    # The flight recorder gives its server another one, and is the process that the host sees.
    recorded = {pid for pid, entry in table.items() if _is_recorder(table.get(entry.parent))}
    inputs = {pid: input_identity(pid) for pid in servers | recorded}
    tops = [
        table[pid]
        for pid in servers - recorded
        if all(inputs.get(one) != inputs[pid] for one in _ancestors(table[pid], table)[1:])
    ]
    hosts = {entry.parent for entry in tops} | ({host} if host is not None else set())
    names = {Path(command.words[0]).name[:KERNEL_NAME] for command in commands}
    ended = [
        entry
        for entry in table.values()
        if entry.has_ended
        and entry.parent not in servers
        and (
            MCP_NAME.search(entry.name)
            # The name of a runtime tells nothing about a process of another parent.
            or (entry.name in names and not runs_another(entry.name))
            or (entry.parent in hosts and runs_another(entry.name))
        )
    ]
    return sorted([*tops, *ended], key=lambda entry: (entry.parent, entry.started_ticks, entry.pid))


def _is_server(entry: ProcessEntry, commands: Sequence[ConfiguredCommand]) -> bool:
    is_named = any(command.matches(entry.command) for command in commands) or _has_mcp_name(entry.command)
    return is_named and all(is_pipe_or_socket(entry.pid, descriptor) for descriptor in (0, 1))


def _is_recorder(entry: ProcessEntry | None) -> bool:
    return entry is not None and own_command(entry.command) != entry.command


def _has_mcp_name(command: Sequence[str]) -> bool:
    """Whether the program, or the program that it runs, has ``mcp`` in its name."""
    if not command:
        return False
    first, *rest = (Path(word).name for word in split_title(own_command(command)))
    if MCP_NAME.search(first):
        return True
    words = [word for word in rest if not word.startswith("-")]
    if not runs_another(first):
        return False
    named = words[: 1 if INTERPRETERS.fullmatch(first) else MOST_RUNNER_WORDS]
    return any(MCP_NAME.search(word) for word in named)


def _wait_for_end(servers: list[ProcessEntry]) -> list[ProcessEntry]:
    """Waits until all servers have ended, for :data:`GRACE_S`. Returns those that go on running."""
    handles = {entry.pid: handle for entry in servers if (handle := _open_process(entry)) is not None}
    try:
        with selectors.DefaultSelector() as selector:
            for handle in handles.values():
                selector.register(handle, selectors.EVENT_READ)
            ended: set[int] = set()
            deadline = time.monotonic() + GRACE_S
            while len(ended) < len(handles) and (left_s := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left_s):
                    selector.unregister(key.fd)
                    ended.add(key.fd)
        return [entry for entry in servers if entry.pid in handles and handles[entry.pid] not in ended]
    finally:
        for handle in handles.values():
            os.close(handle)


def _doubled_starts(servers: list[ProcessEntry]) -> list[ProcessFinding]:
    groups: dict[tuple[int, tuple[str, ...], str], list[int]] = {}
    for entry in servers:
        groups.setdefault((entry.parent, entry.command, _folder_of(entry.pid)), []).append(entry.pid)
    return [ProcessFinding(code="doubled-start", pids=pids) for pids in groups.values() if len(pids) > 1]


def _folder_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


def _finding_of_each(code: str, entries: list[ProcessEntry]) -> list[ProcessFinding]:
    found = [ProcessFinding.model_validate({"code": code, "pids": [entry.pid for entry in entries]})]
    return found if entries else []


def _describe(
    entry: ProcessEntry, table: dict[int, ProcessEntry], commands: Sequence[ConfiguredCommand]
) -> ServerProcess:
    command = next((one for one in commands if one.matches(entry.command)), None)
    tree = _tree(entry.pid, table)
    parent = table.get(entry.parent)
    return ServerProcess(
        pid=entry.pid,
        command=_command_words(entry),
        server=command.server if command else "",
        configuration=str(command.configuration) if command else "",
        parent=entry.parent,
        parent_command=_command_words(parent) if parent is not None else "",
        age_s=entry.age_s,
        memory_bytes=sum(one.memory_bytes for one in tree),
        processes=len(tree),
        has_ended=entry.has_ended,
    )


def _command_words(entry: ProcessEntry) -> str:
    """The command without secrets, and without the flight recorder; the name of a process that has ended."""
    command = own_command(entry.command)
    return redact_command(shlex.join(command)) if any(command) else entry.name


def _ancestors(entry: ProcessEntry, table: dict[int, ProcessEntry]) -> list[int]:
    """The process and its ancestors."""
    return [entry.pid, *(one.pid for one in _ancestor_entries(entry.pid, table))]


def _ancestor_entries(pid: int, table: dict[int, ProcessEntry]) -> list[ProcessEntry]:
    found: list[ProcessEntry] = []
    seen = {pid}
    entry = table.get(pid)
    while entry is not None and entry.parent not in seen:
        seen.add(entry.parent)
        entry = table.get(entry.parent)
        found += [entry] if entry is not None else []
    return found


def _tree(pid: int, table: dict[int, ProcessEntry]) -> list[ProcessEntry]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in table.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found, waiting = [], [pid]
    while waiting:
        number = waiting.pop()
        found.append(table[number])
        waiting += children.get(number, [])
    return found
