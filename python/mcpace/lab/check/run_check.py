"""Check of a host's configurations: starts all servers as the host does, and one by one, in interleaved rounds.

Design constraint: a server that fails or hangs is a result, never the end of the check. Each operation has a time
limit, and no process outlives the check.
"""

from __future__ import annotations

import os
import re
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcpace import _core
from mcpace.lab import tokens
from mcpace.lab.check import runner_stages
from mcpace.lab.check.closer_look import CloserLook, look_closer
from mcpace.lab.check.code_caches import CodeCache, code_cache
from mcpace.lab.check.install_command import install_command
from mcpace.lab.check.recorded_use import recorded_use
from mcpace.lab.check.server_starts import observe_starts, ready_s, start_servers
from mcpace.lab.check.servers import CheckedServer, CheckedServers
from mcpace.lab.check.stamped_output import StampedOutput
from mcpace.lab.check.start_parts import NANOS, ObservedStart
from mcpace.lab.check.start_schedule import shortest_schedule_s
from mcpace.lab.check.start_watch import ProgramStart, StartWatch
from mcpace.lab.clients.measure import Session
from mcpace.lab.clients.plan import Settings
from mcpace.lab.defaults import CHECK_ROUNDS, CHECK_SLOW_ROUND_S
from mcpace.lab.errors import EnvironmentProblem, LabError
from mcpace.lab.hosts.flights import flights_root
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.runners import RUNNERS
from mcpace.lab.processes.strays import ended_strays, thread_pool_with_children
from mcpace.lab.progress import Progress, Silent
from mcpace.lab.targets import Target, redact_command
from mcpace.report.model.run import Case, Run, Subject
from mcpace.report.model.start import (
    FASTER,
    AdvisedStart,
    CheckFacts,
    LimitedStart,
    RecordedUse,
    ServerStart,
    StartFacts,
    TriedStart,
)
from mcpace.system.processors import usable_cores

LEAST_RUNNER_S, LEAST_RUNNER_SHARE = 0.1, 0.25
"""A start without the package runner is tried where the runner takes at least this time, and this share."""
LEAST_IDLE_SHARE = 0.5
"""A server hangs where it fails after so long that the others were ready for at least this share of the time."""
LEAST_GAIN = 0.75
"""Fewer servers at the same time are tried where the start could take less than this share of the time."""
NPX_PART = re.compile(r"Cannot find (?:module|package) '([^']*/_npx/[0-9a-f]+)/")
"""A missing file below a folder of npx, which takes a folder for complete whose installation was killed."""
OWN_FINDINGS = frozenset({"slow-start"})
"""Findings that the table of starts says in more detail."""


@dataclass
class _Server:
    """One server that can be started, and its observations."""

    checked: CheckedServer
    target: Target
    session: Session | None = None
    together: list[ObservedStart] = field(default_factory=list)
    cold: ObservedStart | None = None
    cold_stages: runner_stages.Stages = field(default_factory=dict)
    cold_failure: str = ""
    failures: list[str] = field(default_factory=list)
    look: CloserLook = field(default_factory=CloserLook)
    tried: TriedStart | None = None
    tried_command: tuple[str, ...] = ()
    """The command of ``tried``, with its secrets."""
    cache: CodeCache | None = None
    """Variables with which the server's interpreter keeps compiled code, where it would not do so."""
    cached: TriedStart | None = None
    use: RecordedUse | None = None
    is_worth_trying: bool = True
    """Whether a start without the package runner can be advice."""
    rss_bytes: int | None = None
    hangs: bool = False
    """Whether the server failed long after the others were ready, so that another start would only wait as long."""


@dataclass(frozen=True)
class _Check:
    """Options and helpers that all steps of one check share."""

    watch: StartWatch
    time_limit_s: float
    progress: Progress
    folder: Path
    """For compiled code."""


def run(
    checked: CheckedServers, rounds: int | None, calls: int, time_limit_s: float, progress: Progress, *, cold: bool
) -> Run:
    """Checks all servers. Ctrl-C ends the check early; the run is then marked partial.

    ``rounds``: ``None`` for the default. ``cold``: whether servers are also started with empty caches of their package
    runners. Raises :class:`EnvironmentProblem` for ``cold`` on Windows.
    """
    if cold and sys.platform == "win32":
        raise EnvironmentProblem(
            "--cold needs Linux or macOS, because Windows has no named pipe that a shell can write to"
        )
    most_rounds = rounds or CHECK_ROUNDS
    options = {
        "configurations": sorted({str(server.configuration) for server in checked.servers}),
        "rounds": most_rounds,
        "calls": calls,
        "cold": cold,
        "time_limit_s": time_limit_s,
        "encoding": tokens.ENCODING if tokens.has_tokenizer() else None,
    }
    result = new_run("check", options)
    result.check = CheckFacts(switched_off=list(checked.switched_off))
    cases: dict[str, list[Case]] = {}
    servers = [_Server(one, one.target) for one in checked.servers if one.target is not None]
    progress.begin(most_rounds * (len(servers) + 1) + len(servers) * (2 if cold else 1))
    try:
        with ended_strays(), ExitStack() as stack:
            settings = Settings(trials=most_rounds, time_limit_s=time_limit_s, calls=calls)
            try:
                folder = tempfile.TemporaryDirectory(prefix="mcpace-check-", ignore_cleanup_errors=True)
                with StartWatch() as watch, folder as place:
                    check = _Check(watch, time_limit_s, progress, Path(place))
                    for server in servers:
                        _open_session(server, stack, settings)
                        server.use = recorded_use(flights_root(), server.checked.configuration, server.checked.name)
                    for number in range(1, most_rounds + 1):
                        began = time.monotonic()
                        result.check.together_s += _start_together(servers, check)
                        if number == 1:
                            _fill_caches(servers, check)
                        for server in servers if number % 2 else servers[::-1]:
                            _start_alone(server, check, f"round {number}/{most_rounds}")
                        if rounds is None and time.monotonic() - began > CHECK_SLOW_ROUND_S:
                            result.options["rounds"] = number
                            break
                    result.check.limited = _start_fewer(servers, result.check.together_s, check)
                    result.check.advised = _start_as_advised(servers, len(result.check.together_s), check)
                    _look_closer(servers, check)
                    for server in servers if cold else ():
                        _start_cold(server, check)
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


def _start_together(servers: Sequence[_Server], check: _Check) -> list[float]:
    """Starts all servers at the same time. Returns the time until the last one had listed its tools; nothing where none
    had.
    """
    check.progress.step("all servers at once")
    # A server that failed is not started again and again, since it may hang.
    running = [server for server in servers if not server.failures]
    starts, failures = start_servers(
        [server.target for server in running], len(running), check.time_limit_s, check.watch
    )
    ready = ready_s(starts)
    for server, failure, start in zip(running, failures, starts, strict=True):
        if start is not None and ready and ready[-1] <= (1 - LEAST_IDLE_SHARE) * start.failed_s:
            server.hangs = start.failed_s >= check.time_limit_s
        server.together += [start] if start is not None else []
        if failure:
            failure = _failure_with_output(server, failure, check)
            printed = "; it printed text on stdout before the protocol" if start is not None and start.noise else ""
            server.failures.append(failure + printed)
        memory = check.watch.rss_bytes(start.pid) or 0 if start is not None and start.pid else 0
        server.rss_bytes = max(server.rss_bytes or 0, memory) or None
    return ready[-1:]


def _failure_with_output(server: _Server, failure: str, check: _Check) -> str:
    """The failure of a server, after advice where npx has only a part of its package. Where npx could not install the
    package, the failure has the output of the script that failed, from another start.
    """
    if part := NPX_PART.search(failure):
        # The advice is first, since tables cut a long failure.
        return f"if npx was ended while it unpacked this package, remove {part[1]}, and npx installs it anew: {failure}"
    is_npm = RUNNERS.get(Path(server.target.command[0]).name) in ("npx", "npm") if server.target.command else False
    if not is_npm or not failure.endswith(")") or '" ended (exit code ' not in failure:
        return failure
    environment = tuple({**dict(server.target.environment), **runner_stages.SCRIPTS_REPORTING}.items())
    target = replace(server.target, environment=environment)
    _, (other,) = start_servers([target], 1, check.time_limit_s, check.watch)
    return other if other.startswith(failure) else failure


def _start_fewer(servers: Sequence[_Server], together_s: Sequence[float], check: _Check) -> LimitedStart | None:
    """Starts all servers, but only as many at the same time as there are processors, where that may be faster."""
    running = [server for server in servers if not server.failures]
    alone_s = [start.total_s for server in running for start in _alone(server, check.watch)[-1:]]
    at_once = len(usable_cores())
    if not together_s or len(alone_s) <= at_once:
        return None
    if shortest_schedule_s(alone_s, at_once) > LEAST_GAIN * statistics.median(together_s):
        return None
    check.progress.step(f"{at_once} servers at once")
    starts, _ = start_servers([server.target for server in running], at_once, check.time_limit_s, check.watch)
    return LimitedStart(at_once=at_once, ready_s=ready_s(starts))


def _start_as_advised(servers: Sequence[_Server], rounds: int, check: _Check) -> AdvisedStart | None:
    """Starts all servers at the same time with all advice, in so many rounds; nothing where there is no advice or a
    server fails.
    """
    running = [server for server in servers if not server.failures]
    advised = [_advised_target(server, check.watch) for server in running if not _is_unused(server)]
    if not advised or advised == [server.target for server in running]:
        return None
    ready: list[float] = []
    for number in range(1, rounds + 1):
        check.progress.step(f"all advice at once · round {number}/{rounds}")
        starts, failures = start_servers(advised, len(advised), check.time_limit_s, check.watch)
        if any(failures):
            return None
        ready += ready_s(starts)[-1:]
    return AdvisedStart(servers=len(advised), ready_s=ready)


def _is_unused(server: _Server) -> bool:
    listed = server.session.listed_tools if server.session is not None else None
    return server.use is not None and listed is not None and server.use.shows_unused_server(listed)


def _advised_target(server: _Server, watch: StartWatch) -> Target:
    """The server without its package runner, and with a cache of compiled code, where these were tried and are faster;
    else as it is configured.
    """
    alone_s = [start.total_s for start in _alone(server, watch)]
    target = server.target
    if server.tried is not None and _is_faster(server.tried.seconds, alone_s):
        target = _installed_target(server)
    before_s = server.tried.seconds if server.tried is not None else alone_s
    if server.cache is not None and server.cached is not None and _is_faster(server.cached.seconds, before_s):
        target = _with_variables(target, server.cache.tried)
    return target


def _is_faster(seconds: Sequence[float], before_s: Sequence[float]) -> bool:
    if not seconds or not before_s:
        return False
    return statistics.median(seconds) < FASTER * statistics.median(before_s)


def _installed_target(server: _Server) -> Target:
    """The server without its package runner where this was tried; else as it is configured."""
    return replace(server.target, command=server.tried_command) if server.tried is not None else server.target


def _with_variables(target: Target, variables: dict[str, str]) -> Target:
    return replace(target, environment=tuple({**dict(target.environment), **variables}.items()))


def _alone(server: _Server, watch: StartWatch) -> list[ObservedStart]:
    """The complete starts of the server alone."""
    found = observe_starts(server.session.recording(), watch) if server.session is not None else []
    return [one for one in found if one.is_complete]


def _start_alone(server: _Server, check: _Check, where: str) -> None:
    """Starts the server alone, then without its package runner where that can be advice."""
    check.progress.step(f"{server.checked.label} · {where}")
    if server.session is not None and not server.session.given_up and not server.hangs:
        server.session.run_round(Silent(), server.checked.label)
        _try_installed(server, check)
        _try_cached(server, check)


def _try_installed(server: _Server, check: _Check) -> None:
    """Starts the program that the package runner started, without the package runner."""
    latest = server.together[-1] if server.together else None
    program = latest.program if latest is not None and latest.is_complete else None
    if latest is None or program is None or program.at_ns is None or not program.runner or not server.is_worth_trying:
        return
    runner_s = (program.at_ns - latest.spawned_ns) / NANOS
    if runner_s < LEAST_RUNNER_S or runner_s < LEAST_RUNNER_SHARE * latest.total_s:
        return
    if server.tried is None:
        words = redact_command(shlex.join(program.words))
        install = install_command(server.target.command, program)
        server.tried = TriedStart(code="installed", command=words, seconds=[], install=install)
        server.tried_command = program.words
    (start,), (failure,) = start_servers(
        [replace(server.target, command=program.words)], 1, check.time_limit_s, check.watch
    )
    if failure or start is None:
        # The program needs what its runner sets. There is no advice then.
        server.tried, server.is_worth_trying = None, False
    else:
        server.tried.seconds.append(start.total_s)


def _fill_caches(servers: Sequence[_Server], check: _Check) -> None:
    """Starts the servers whose interpreters would keep no compiled code, so that they keep it. Nothing is timed, so all
    processors are used.
    """
    found: list[tuple[_Server, CodeCache, Target]] = []
    for server in servers:
        program = next((one.program for one in server.together if one.is_complete), None)
        if program is None:
            continue
        cache = code_cache(program, {**os.environ, **dict(server.target.environment)}, check.folder)
        if cache is not None:
            target = replace(server.target, command=program.words) if program.runner else server.target
            found.append((server, cache, _with_variables(target, cache.tried)))
    if found:
        check.progress.step("a start for the caches of compiled code")
        targets = [target for _, _, target in found]
        _, failures = start_servers(targets, len(usable_cores()), check.time_limit_s, check.watch)
        for (server, cache, _), failure in zip(found, failures, strict=True):
            server.cache = cache if not failure else None


def _try_cached(server: _Server, check: _Check) -> None:
    """Starts the server with compiled code from an earlier start, without its package runner where that was tried."""
    if server.cache is None:
        return
    target = _with_variables(_installed_target(server), server.cache.tried)
    (start,), (failure,) = start_servers([target], 1, check.time_limit_s, check.watch)
    if failure or start is None:
        server.cache, server.cached = None, None
        return
    if server.cached is None:
        words = redact_command(shlex.join(target.command))
        server.cached = TriedStart(
            code="cached-code", command=words, seconds=[], environment=dict(server.cache.advised)
        )
    server.cached.seconds.append(start.total_s)


def _look_closer(servers: Sequence[_Server], check: _Check) -> None:
    """Starts each server once more. Nothing is timed against another start, so that all processors are used."""

    def look(server: _Server) -> None:
        check.progress.step(f"{server.checked.label} · a closer look")
        if any(one.is_complete for one in server.together):
            server.look = look_closer(server.target, check.time_limit_s)

    with thread_pool_with_children(len(usable_cores())) as pool:
        list(pool.map(look, servers))


def _start_cold(server: _Server, check: _Check) -> None:
    """Starts the server with empty caches of its package runner, so that the user's caches stay as they are."""
    check.progress.step(f"{server.checked.label} · empty caches")
    program = next((one.program for one in server.together if one.is_complete), None)
    variables = runner_stages.CACHES.get(_runner(server.target, program))
    if variables is None:
        return
    with (
        tempfile.TemporaryDirectory(prefix="mcpace-cold-", ignore_cleanup_errors=True) as folder,
        StampedOutput() as output,
    ):
        caches = {name: str(Path(folder) / name) for name in variables}
        environment = {**dict(server.target.environment), **runner_stages.REPORTING, **caches}
        target = replace(
            server.target, command=output.command(server.target.command), environment=tuple(environment.items())
        )
        (server.cold,), (server.cold_failure,) = start_servers([target], 1, check.time_limit_s, check.watch)
        server.cold_stages = runner_stages.parse_stages(output.lines())


def _cases(server: _Server, watch: StartWatch) -> list[Case]:
    session = server.session
    if session is None or not session.facts.trials:
        return []
    cases = session.cases(Silent())
    alone = _alone(server, watch)
    imports, stages = server.look.imports, server.look.stages
    # Servers that start at the same time wait for each other, so that times of a start alone don't divide theirs.
    starts = [
        ServerStart(together=together, round=number, total_s=one.total_s, parts=one.parts(*known))
        for together, found, known in ((True, server.together, (None, {})), (False, alone, (imports, stages)))
        for number, one in enumerate(found, 1)
        if one.is_complete
    ]
    if server.cold is not None and server.cold.is_complete:
        parts = server.cold.parts(imports, server.cold_stages)
        starts.append(ServerStart(together=False, cold=True, round=1, total_s=server.cold.total_s, parts=parts))
    program = next((one.program for one in (*alone, *server.together) if one.program is not None), None)
    used = [one.processor_s for one in alone if one.processor_s is not None]
    connect = next(case for case in cases if case.operation == "connect")
    connect.start = StartFacts(
        configuration=str(server.checked.configuration),
        host=server.checked.host,
        starts=starts,
        runner=_runner(server.target, program),
        program=program.path.rsplit("/", 1)[-1] if program is not None else "",
        processor_s=statistics.median(used) if used else None,
        rss_bytes=server.rss_bytes,
        imports=imports.packages if imports is not None else [],
        tried=[one for one in (server.tried, server.cached) if one is not None and one.seconds],
        use=server.use,
        cold_failure=server.cold_failure,
    )
    if not connect.failures:
        connect.error = None  # a later operation failed, whose case says so
    if server.failures:
        connect.error = server.failures[0] if not alone else f"started with all others: {server.failures[0]}"
    for case in cases:
        case.context_tokens = server.look.context if case.operation == "list" else None
        if case.operation == "list" and case.tools is not None:
            _leave_out_tools(case, server.checked)
        case.findings = [finding for finding in case.findings if finding.code not in OWN_FINDINGS]
    return cases


def _leave_out_tools(listing: Case, server: CheckedServer) -> None:
    """Leaves out the tools that the host's configuration keeps from the model."""
    assert listing.tools is not None
    listing.tools = [tool for tool in listing.tools if server.takes_tool(tool.name)]
    listing.listing_tools = len(listing.tools)


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
