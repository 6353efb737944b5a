"""Check of a host's configurations: starts all servers as the host does, and one by one, in interleaved rounds.

Design constraint: a server that fails or hangs is a result, never the end of the check. Each operation has a time
limit, and no process outlives the check.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab import tokens
from mcpace.lab.check.context_tokens import count_context
from mcpace.lab.check.import_times import ImportTimes, measure_imports
from mcpace.lab.check.servers import CheckedServer, CheckedServers
from mcpace.lab.check.start_parts import NANOS, ObservedStart, observed_starts
from mcpace.lab.check.start_watch import ProgramStart, StartWatch
from mcpace.lab.clients.measure import Session
from mcpace.lab.clients.plan import Settings
from mcpace.lab.errors import LabError
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.runners import RUNNERS
from mcpace.lab.processes.strays import ended_strays
from mcpace.lab.progress import Progress, Silent
from mcpace.lab.targets import Target, redact_command
from mcpace.report.model.run import Case, Run, Subject
from mcpace.report.model.start import CheckFacts, ServerStart, StartFacts, TriedStart
from mcpace.report.model.tokens import ContextTokens

DEFAULT_ROUNDS = 2
DEFAULT_CALLS = 3
DEFAULT_TIME_LIMIT_S = 60.0
TRIED_STARTS = 2
LEAST_RUNNER_S, LEAST_RUNNER_SHARE = 0.1, 0.25
"""A start without the package runner is tried where the runner takes at least this time, and this share."""
INSTALLERS = {
    "npx": ("npm install --global", ("--package", "-p")),
    "uvx": ("uv tool install", ("--from",)),
    "uv": ("uv tool install", ("--from",)),
}
"""For each package runner: the command that installs, and options that name the package."""
PLAIN_OPTIONS = ("-y", "--yes", "-q", "--quiet")
"""Options of package runners without a value."""
SUBCOMMANDS = ("exec", "tool", "run", "x")
OWN_FINDINGS = frozenset({"slow-start"})
"""Findings that the table of starts says in more detail."""


@dataclass
class _Server:
    """One server that can be started, and its observations."""

    checked: CheckedServer
    target: Target
    session: Session | None = None
    together: list[ObservedStart] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    imports: ImportTimes | None = None
    tried: list[TriedStart] = field(default_factory=list)
    rss_bytes: int | None = None
    context: ContextTokens | None = None


def run(checked: CheckedServers, rounds: int, calls: int, time_limit_s: float, progress: Progress) -> Run:
    """Checks all servers. Ctrl-C ends the check early; the run is then marked partial."""
    options = {
        "configurations": sorted({str(server.configuration) for server in checked.servers}),
        "rounds": rounds,
        "calls": calls,
        "time_limit_s": time_limit_s,
        "encoding": tokens.ENCODING if tokens.has_tokenizer() else None,
    }
    result = new_run("check", options)
    result.check = CheckFacts(switched_off=list(checked.switched_off))
    cases: dict[str, list[Case]] = {}
    servers = [_Server(one, one.target) for one in checked.servers if one.target is not None]
    # One step for each start, one for the imports of each server, and one for all together.
    progress.begin(rounds * (len(servers) + 1) + len(servers))
    try:
        with ended_strays(), ExitStack() as stack:
            settings = Settings(trials=rounds, time_limit_s=time_limit_s, calls=calls)
            try:
                with StartWatch() as watch:
                    for server in servers:
                        _open_session(server, stack, settings)
                    for number in range(1, rounds + 1):
                        # A server that failed is not started again and again, since it may hang.
                        running = [server for server in servers if not server.failures]
                        result.check.together_s += _start_together(running, time_limit_s, watch, progress)
                        for server in servers if number % 2 else servers[::-1]:
                            _start_alone(server, progress, f"round {number}/{rounds}")
                    for server in servers:
                        _look_closer(server, watch, time_limit_s, progress)
            finally:
                with defer_interrupt():
                    cases = {server.checked.label: _cases(server, watch) for server in servers}
    except KeyboardInterrupt:
        result.partial = True
    failures = {server.checked.label: server.failures[0] for server in servers if server.failures}
    for one in checked.servers:
        result.cases += cases.get(one.label) or [_failed_case(one, one.problem or failures.get(one.label))]
    return result


def _open_session(server: _Server, stack: ExitStack, settings: Settings) -> None:
    """Prepares the client that starts the server alone. A target that the client refuses is a failure of the server."""
    try:
        server.session = Session(stack, server.target, settings, None, True, None, None, False)
    except (_core.Problem, LabError) as problem:
        server.failures.append(str(problem))


def _start_together(servers: Sequence[_Server], limit_s: float, watch: StartWatch, progress: Progress) -> list[float]:
    """Starts all servers at the same time. Returns the time until the last one had listed its tools; nothing where none
    had.
    """
    progress.step("all servers at once")
    clients = [_client(server.target, limit_s) for server in servers]
    # Servers that are still starting are ended after Ctrl-C, so that no thread waits for them until the limit.
    with ThreadPoolExecutor(max(1, len(servers))) as pool, ended_strays():
        failures = list(pool.map(_connect_and_list, clients))
        list(pool.map(lambda client: client.disconnect(), clients))
    starts = [_observed(client.recording(), watch) for client in clients]
    for server, failure, found in zip(servers, failures, starts, strict=True):
        server.together += found[:1]
        if failure:
            printed = "; it printed text on stdout before the protocol" if any(one.noise for one in found) else ""
            server.failures.append(failure + printed)
        memory = [watch.rss_bytes(one.pid) or 0 for one in found if one.pid]
        server.rss_bytes = max([server.rss_bytes or 0, *memory]) or None
    complete = [one for found in starts for one in found if one.is_complete]
    if not complete:
        return []
    return [(max(one.listed_ns for one in complete) - min(one.begin_ns for one in complete)) / NANOS]


def _client(target: Target, limit_s: float) -> _core.Client:
    endpoint: Any = list(target.command) or target.url
    return _core.Client(
        endpoint,
        environment=list(target.environment),
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


def _observed(recording: _core.Recording, watch: StartWatch) -> list[ObservedStart]:
    starts = observed_starts(recording.events())
    for start in starts:
        if start.pid is not None and start.answered_ns:
            start.program = watch.program_start(start.pid, start.answered_ns)
    return starts


def _start_alone(server: _Server, progress: Progress, where: str) -> None:
    progress.step(f"{server.checked.label} · {where}")
    if server.session is not None and not server.session.given_up:
        server.session.run_round(Silent(), server.checked.label)


def _look_closer(server: _Server, watch: StartWatch, limit_s: float, progress: Progress) -> None:
    """Counts tokens of everything but tools, and measures imports of Python and a start without the package runner."""
    progress.step(f"{server.checked.label} · a closer look")
    latest = next((one for one in reversed(server.together) if one.is_complete), None)
    if latest is None:
        return
    server.context = count_context(server.target, limit_s)
    if latest.program is None:
        return
    program = latest.program
    if _is_python(program.path):
        server.imports = measure_imports(server.target.command, server.target.environment, limit_s)
    if program.at_ns is None or not program.runner:
        return
    runner_s = (program.at_ns - latest.spawned_ns) / NANOS
    if runner_s < LEAST_RUNNER_S or runner_s < LEAST_RUNNER_SHARE * latest.total_s:
        return
    seconds = []
    for _ in range(TRIED_STARTS):
        client = _client(replace(server.target, command=program.words), limit_s)
        failure = _connect_and_list(client)
        client.disconnect()
        if failure:
            return  # the program needs what its runner sets; there is no advice then
        seconds += [one.total_s for one in observed_starts(client.recording().events()) if one.is_complete]
    server.tried.append(
        TriedStart(
            code="installed",
            command=redact_command(shlex.join(program.words)),
            seconds=seconds,
            install=install_command(server.target.command, program),
        )
    )


def install_command(command: Sequence[str], program: ProgramStart) -> str:
    """The command that installs the package of a package runner; empty where it is not known."""
    found = INSTALLERS.get(RUNNERS.get(Path(command[0]).name, ""))
    if found is None or not program.runner:
        return ""
    installer, package_options = found
    words = list(dropwhile(lambda word: word in SUBCOMMANDS, command[1:]))
    while words and words[0] in PLAIN_OPTIONS:
        words.pop(0)
    if len(words) > 1 and words[0] in package_options:
        words.pop(0)
    # The value of an unknown option is no package.
    if not words or words[0].startswith("-"):
        return ""
    return redact_command(f"{installer} {shlex.quote(words[0])}")


def _is_python(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith("python")


def _cases(server: _Server, watch: StartWatch) -> list[Case]:
    session = server.session
    if session is None or not session.facts.trials:
        return []
    cases = session.cases(Silent())
    alone = _observed(session.recording(), watch)
    starts = [
        ServerStart(together=together, round=number, total_s=one.total_s, parts=one.parts(server.imports))
        for together, found in ((True, server.together), (False, alone))
        for number, one in enumerate(found, 1)
        if one.is_complete
    ]
    program = next((one.program for one in (*alone, *server.together) if one.program is not None), None)
    used = [one.processor_s for one in alone if one.is_complete and one.processor_s is not None]
    connect = next(case for case in cases if case.operation == "connect")
    connect.start = StartFacts(
        configuration=str(server.checked.configuration),
        host=server.checked.host,
        starts=starts,
        runner=_runner(server.target, program),
        program=program.path.rsplit("/", 1)[-1] if program is not None else "",
        processor_s=statistics.median(used) if used else None,
        rss_bytes=server.rss_bytes,
        imports=server.imports.packages if server.imports is not None else [],
        tried=server.tried,
    )
    if not connect.failures:
        connect.error = None  # a later operation failed, whose case says so
    if server.failures:
        alone_too = not any(one.is_complete for one in alone)
        connect.error = server.failures[0] if alone_too else f"started with all others: {server.failures[0]}"
    for case in cases:
        case.context_tokens = server.context if case.operation == "list" else None
        case.findings = [finding for finding in case.findings if finding.code not in OWN_FINDINGS]
    return cases


def _runner(target: Target, program: ProgramStart | None) -> str:
    """Name of the package runner: as the configuration writes it, since uvx runs as uv."""
    if program is None or not program.runner:
        return ""
    return RUNNERS.get(Path(target.command[0]).name, program.runner)


def _failed_case(server: CheckedServer, error: str | None) -> Case:
    """The case of a server that was not started."""
    return Case(
        subject=Subject(sdk="mcpace-client"),
        target=server.label,
        operation="connect",
        start=StartFacts(configuration=str(server.configuration), host=server.host),
        error=error,
    )
