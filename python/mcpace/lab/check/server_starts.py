"""Starts of servers with the instrumented client, some or all at the same time."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from mcpace import _core
from mcpace.lab.check import daemons
from mcpace.lab.check.daemons import explain_fork, has_forked_and_exited
from mcpace.lab.check.start_parts import NANOS, ObservedStart, observed_starts
from mcpace.lab.check.start_watch import StartWatch
from mcpace.lab.processes.starters import name_started_program, started_program
from mcpace.lab.processes.strays import thread_pool_with_children
from mcpace.lab.targets import Target


def start_servers(
    targets: Sequence[Target], at_once: int, limit_s: float, watch: StartWatch
) -> tuple[list[ObservedStart | None], list[str]]:
    """Starts servers, ``at_once`` at the same time, and ends them all. Returns for each its start, ``None`` where
    nothing was seen, and its failure, empty where there was none.
    """
    marks = [secrets.token_hex(8) for _ in targets]
    clients = [_client(target, limit_s, mark) for target, mark in zip(targets, marks, strict=True)]
    with thread_pool_with_children(at_once) as pool:
        problems = pool.map(_connect_and_list, clients)
        failures = [
            explain_fork(problem, started_program(target.command))
            if has_forked_and_exited(client.recording().events(), mark)
            else name_started_program(problem, target.command)
            for client, target, mark, problem in zip(clients, targets, marks, list(problems), strict=True)
        ]
        list(pool.map(lambda client: client.disconnect(), clients))
    starts = [observe_starts(client.recording(), watch)[:1] for client in clients]
    return [found[0] if found else None for found in starts], failures


def ready_s(starts: Sequence[ObservedStart | None]) -> list[float]:
    """Times until each server had listed its tools, since the first start."""
    complete = [one for one in starts if one is not None and one.is_complete]
    begin_ns = min((one.begin_ns for one in complete), default=0)
    return sorted((one.listed_ns - begin_ns) / NANOS for one in complete)


def _client(target: Target, limit_s: float, mark: str) -> _core.Client:
    endpoint: Any = list(target.command) or target.url
    return _core.Client(
        endpoint,
        environment=[*target.environment, (daemons.VARIABLE, mark)],
        auth=target.auth,
        token=target.token,
        limit_s=limit_s,
        headers=list(target.headers),
    )


def _connect_and_list(client: _core.Client) -> str:
    """Connects and lists the tools. Returns the failure; an empty text where there was none."""
    try:
        client.connect()
        client.list_tools()
    except _core.ClientProblem as problem:
        return str(problem)
    return ""


def observe_starts(recording: _core.Recording, watch: StartWatch) -> list[ObservedStart]:
    """Every start of a recording, with the server's own program."""
    starts = observed_starts(recording.events())
    for start in starts:
        if start.pid is not None and start.answered_ns:
            start.program = watch.program_start(start.pid, start.answered_ns)
    return starts
