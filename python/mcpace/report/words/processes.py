"""The sentences about the servers that hosts started.

Design constraint: commands come from other programs. Each is one clean line of limited length.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from mcpace.report.model.processes import HostProcesses, ProcessCode, ProcessFinding, ServerProcess
from mcpace.report.words.quantities import NO_BREAK, clean, count, join_words, size
from mcpace.report.words.start import short_name

MOST_NAMED = 3
ADVICE: dict[ProcessCode, str] = {
    "orphaned-server": "mcpace processes --end ends servers without a host.",
    "doubled-start": "Look for a second entry in the host's configurations, or for a restart that keeps the first one.",
    "never-reaped": "The host has to wait for the processes that it starts; they disappear when the host ends.",
}


def sentences(made: HostProcesses) -> list[str]:
    """The verdict: the number of servers, the findings, and the servers that were ended."""
    running = [one for one in made.servers if not one.has_ended]
    if not made.servers:
        return ["No MCP server over stdio runs for this user."]
    hosts = count(len({one.parent for one in running}), "process", "processes")
    memory = size(sum(one.memory_bytes for one in running))
    servers = count(len(running), "MCP server")
    told = [f"{servers} over stdio {'runs' if len(running) == 1 else 'run'}, started by {hosts}: {memory} of memory."]
    if not running:
        told = ["No MCP server over stdio runs for this user."]
    for finding in made.findings:
        told.append(_finding_words(finding, made))
        if not set(finding.pids) <= set(made.ended):
            told.append(ADVICE[finding.code])
    if not made.findings:
        told.append("No server was left behind, started twice or never reaped.")
    if made.ended:
        told.append(f"{count(len(made.ended), 'server')} {'was' if len(made.ended) == 1 else 'were'} ended.")
    return told


def age_words(seconds: float) -> str:
    """``12 s``, ``5 min``, ``3 h``, ``2 days``."""
    for limit_s, unit_s, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit_s:
            return f"{seconds / unit_s:.0f}{NO_BREAK}{unit}"
    return f"{seconds / 86_400:.0f}{NO_BREAK}days"


def program_words(command: str) -> str:
    """Name of a command's program, without its folder."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return clean(PurePosixPath(words[0]).name if words else "", 12)


def server_words(one: ServerProcess) -> str:
    """``time (4711)``."""
    return f"{server_name(one)} ({one.pid})"


def server_name(one: ServerProcess) -> str:
    """The server's name in the configuration, else the name of its program."""
    return clean(one.server, 60) if one.server else short_name(f"stdio:{one.command}")


def _finding_words(finding: ProcessFinding, made: HostProcesses) -> str:
    own = [one for one in made.servers if one.pid in finding.pids]
    named = [server_words(one) for one in own[:MOST_NAMED]]
    more = [f"{len(own) - MOST_NAMED} more"] if len(own) > MOST_NAMED else []
    names, is_one = join_words([*named, *more]), len(own) == 1
    host = f"{program_words(own[0].parent_command)} ({own[0].parent})" if own else ""
    match finding.code:
        case "orphaned-server":
            held = size(sum(one.memory_bytes for one in own))
            return f"{names} {'has' if is_one else 'have'} no host any more and {'holds' if is_one else 'hold'} {held}."
        case "doubled-start":
            return f"{host} runs the same server {len(own)} times: {names}."
        case "never-reaped":
            return f"{names} {'has' if is_one else 'have'} ended, and the host has not read the exit code."
