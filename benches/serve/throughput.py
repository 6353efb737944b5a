"""The throughput of each server: wrk, one thread, 50 kept-alive connections, echo tool, all as fast as they can."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import call
import load
import table
from process import Process
from subjects import Subject

CONNECTIONS = 50


def measure(chosen: list[Subject], rounds: int, seconds: float, folder: Path) -> list[table.Row]:
    """One row for each server and revision."""
    with ExitStack() as started:
        running = [
            (subject, started.enter_context(Process(subject.command, subject.environment))) for subject in chosen
        ]
        for subject, server in running:
            server.wait_until_it_listens()
            for revision in subject.revisions:
                try:
                    call.check(server.port, the_call(subject, revision), subject.mode)
                except (RuntimeError, OSError, ValueError) as error:
                    raise RuntimeError(f"{subject.label}, {revision}: {error}") from error
        rows = measure_rounds(running, rounds, seconds, folder)
    table.add_ratios(rows)
    return sorted(rows, key=lambda row: row["tools"] != 1)


def measure_rounds(
    running: list[tuple[Subject, Process]], rounds: int, seconds: float, folder: Path
) -> list[table.Row]:
    """One row for each server and revision."""
    cases = [(subject, revision, server) for subject, server in running for revision in subject.revisions]
    for subject, revision, server in cases:
        load.measure(server.port, the_call(subject, revision), 1, CONNECTIONS, folder)
    taken: list[list[tuple[load.Figures, float, int]]] = [[] for _ in cases]
    for number in range(1, rounds + 1):
        for case, (subject, revision, server) in zip(taken, cases, strict=True):
            before = server.cpu_s()
            figures = load.measure(server.port, the_call(subject, revision), seconds, CONNECTIONS, folder)
            case.append((figures, server.cpu_s() - before, server.rss_bytes()))
            print(f"round {number}: {subject.label}, {revision}: {figures.rps:,.0f} requests/s", file=sys.stderr)
    # Over a single connection no call queues, so that a stall is clearly visible.
    alone = [
        load.measure(server.port, the_call(subject, revision), 1, 1, folder) for subject, revision, server in cases
    ]
    return [
        table.row(subject.name, subject.mode, revision, subject.tools, case, one)
        for (subject, revision, _), case, one in zip(cases, taken, alone, strict=True)
    ]


def the_call(subject: Subject, revision: str) -> call.Call:
    """The echo call, as the generator makes it to this server."""
    return call.Call(revision, events_only=subject.events_only)
