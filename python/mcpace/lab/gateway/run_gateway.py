"""Measurement of a gateway: the same server directly and through it, in turns; then what the gateway changes.

The times come from sessions without any instrument behind the gateway. If the gateway's command names the server by
``{direct}``, mcpace starts the gateway twice more: in front of a recorder, which sees what the gateway sends to the
server, and in front of a scripted server that sends progress, which shows whether streams pass at once.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from mcpace import _core
from mcpace.lab.clients.measure import Session
from mcpace.lab.clients.plan import Settings
from mcpace.lab.compare import comparison
from mcpace.lab.compare.turns import run_rounds
from mcpace.lab.errors import LabError, Unreachable
from mcpace.lab.gateway import observation, traffic
from mcpace.lab.gateway.added_time import added_parts, added_quantiles
from mcpace.lab.gateway.plan import PLACE, TURNS, GatewayPlan, with_direct
from mcpace.lab.gateway.traffic import Traffic
from mcpace.lab.load.engine import Quiet, run_engine
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.histogram import combine_histograms, histogram_latencies
from mcpace.lab.load.outcome_to_case import load_case
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.load.run_load import Place, check_conversation, plan_of
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.statistics.paired_ratio import paired_ratio
from mcpace.lab.targets import Target, Tool
from mcpace.report.model.gateway import GatewayChange, GatewayFacts, GatewayLoad
from mcpace.report.model.run import Case, Run, Subject

TOLERANCE = 0.05
TURN_WARM_UP_S = 0.5


def run_gateway(plan: GatewayPlan, settings: Settings, progress: Progress) -> Run:
    """Measures both paths. Ctrl-C ends the experiment early; the run is then marked partial.

    Raises :class:`LabError` where a path can't be reached at all, and :class:`UsageProblem` for a wrong plan.
    """
    plan.check()
    facts = GatewayFacts()
    options = {
        "direct": plan.direct.name,
        "through": plan.through.name,
        "revision": plan.revision,
        "vus": plan.vus,
        "duration_s": plan.duration_s,
    }
    result = new_run("gateway", options | settings.as_options())
    result.gateway = facts
    settings.make_folder()
    try:
        with ExitStack() as stack:
            direct = stack.enter_context(_started_server(plan, settings, progress))
            with _started_gateway(plan, direct, progress) as through:
                tool = _measure_times(plan, (direct, through), settings, progress, result)
                if plan.duration_s and tool is not None:
                    progress.preparing("load in turns")
                    facts.load = _measure_load(plan, (direct, through), tool, settings)
            _observe(plan, replace(direct, tool=tool), settings, progress, result)
    except KeyboardInterrupt:
        result.partial = True
    return result


@contextmanager
def _started_server(plan: GatewayPlan, settings: Settings, progress: Progress) -> Iterator[Target]:
    """The server with its URL or command. A profile is served by mcpace itself."""
    target = plan.direct
    if target.profile is None:
        with start_target(target, progress, extra_root=plan.extra_root) as started:
            yield started
        return
    scripted = _core.Target(target.profile, hold_s=settings.hold_s, faults=list(settings.faults), token=target.token)
    try:
        yield replace(target, profile=None, url=scripted.url)
    finally:
        scripted.stop()


@contextmanager
def _started_gateway(plan: GatewayPlan, direct: Target, progress: Progress) -> Iterator[Target]:
    """The gateway in front of the server. A gateway whose tool the user did not name calls that of the server."""
    filled = with_direct(plan.through, direct.url or direct.command)
    with start_target(filled, progress, extra_root=plan.extra_root) as started:
        yield replace(started, name=plan.through.name, tool=started.tool or direct.tool)


def _measure_times(
    plan: GatewayPlan, paths: tuple[Target, Target], settings: Settings, progress: Progress, result: Run
) -> Tool | None:
    """Measures both paths in turns, and returns the tool that was called."""
    facts = result.gateway
    assert facts is not None, "the caller made it"
    with ExitStack() as stack:
        # Layer timings would be a header more for the gateway to pass.
        sessions = [
            Session(stack, place, settings, plan.revision, server_timing=False, extra_root=plan.extra_root)
            for place in paths
        ]
        direct, through = sessions
        progress.begin(settings.trials * 3 * len(sessions))
        try:
            run_rounds(sessions, settings.trials, progress)
        finally:
            with defer_interrupt():
                for session in sessions:
                    session.end_sampling()
                theirs, result.cases = (session.cases(progress) for session in sessions)
                pairs, only_base, only_now = comparison.match_cases(theirs, result.cases)
                result.comparison = comparison.compare_pairs(pairs, only_base, only_now, TOLERANCE)
                if all(session.has_results for session in sessions):
                    facts.quantiles = added_quantiles(direct, through)
                    facts.parts = added_parts(direct, through)
                    facts.changes += _server_changes(theirs, result.cases)
                    facts.changes += traffic.reply_changes(
                        *(Traffic.of(session.recording().events(), "back") for session in sessions)
                    )
        for session in sessions:
            if session.facts.error and not session.has_results:
                raise Unreachable(f"{session.facts.target}: {session.facts.error}")
        return direct.tool if direct.has_results else None


def _server_changes(direct: list[Case], through: list[Case]) -> list[GatewayChange]:
    """Differences of the handshake. The revision is a change of its own, since it changes what a client may do."""
    listings = [next((case.listing for case in side if case.listing), None) for side in (direct, through)]
    before, after = listings
    if before is None or after is None:
        return []
    values: tuple[tuple[str, str, str], ...] = (
        ("revision", before.revision, after.revision),
        ("server", f"{before.server} {before.version}".strip(), f"{after.server} {after.version}".strip()),
    )
    return [
        GatewayChange(code=code, direct=then, through=now)  # type: ignore[arg-type]  # two of its codes
        for code, then, now in values
        if then != now
    ]


@dataclass
class _Path:
    """One path under load."""

    plan: LoadPlan
    outcomes: list[Outcome]
    cases: list[Case]

    def rates(self) -> list[float]:
        return [case.throughput_rps or 0.0 for case in self.cases]


def _measure_load(plan: GatewayPlan, paths: tuple[Target, Target], tool: Tool, settings: Settings) -> GatewayLoad:
    """Puts the same load on both paths in turns, in alternating order."""
    turn_s = plan.duration_s / TURNS
    found = GatewayLoad(vus=plan.vus, turns=0, turn_s=turn_s, direct_rps=0.0, through_rps=0.0)
    with ExitStack() as stack:
        sides: list[_Path] = []
        try:
            for place in paths:
                wanted = LoadSettings(
                    vus=plan.vus,
                    duration_s=turn_s,
                    warm_up_s=TURN_WARM_UP_S,
                    mix=((tool.name, 1.0),),
                    arguments={tool.name: tool.arguments},
                    revision=plan.revision,
                    extra_root=plan.extra_root,
                    headers=place.headers,
                    timeout_s=min(settings.time_limit_s, 30.0),
                )
                reached = Place(stack, place, wanted)
                checked, token = check_conversation(reached, wanted)
                sides.append(_Path(plan_of(reached.plan_target(token), wanted, checked), [], []))
            for number in range(TURNS):
                for side in sides if number % 2 == 0 else sides[::-1]:
                    outcome = run_engine(replace(side.plan, seed=number + 1), Quiet())
                    if outcome.ended == "stopped":
                        raise KeyboardInterrupt
                    side.outcomes.append(outcome)
                    side.cases.append(load_case(Subject(sdk="mcpace-load"), "", side.plan, outcome))
        except LabError as problem:
            found.error = str(problem)
            return found
        _summarize_load(found, *sides)
    return found


def _summarize_load(found: GatewayLoad, direct: _Path, through: _Path) -> None:
    found.turns = len(through.cases)
    found.direct_rps, found.through_rps = (statistics.fmean(side.rates()) for side in (direct, through))
    found.direct_errors, found.through_errors = (
        sum(case.errors or 0 for case in side.cases) for side in (direct, through)
    )
    found.direct_s, found.through_s = (
        histogram_latencies(
            combine_histograms(
                one.latency for outcome in side.outcomes for one in outcome.operations if one.kind == "call"
            )
        )
        for side in (direct, through)
    )
    found.saturated = any(case.saturated for side in (direct, through) for case in side.cases)
    reasons = [case.error for side in (direct, through) for case in side.cases if case.error]
    found.error = reasons[0] if reasons else ""
    ratio = paired_ratio(through.rates(), direct.rates())
    if ratio is not None:
        found.ratio, found.low, found.high, _ = ratio


def _observe(plan: GatewayPlan, direct: Target, settings: Settings, progress: Progress, result: Run) -> None:
    """Starts the gateway again, in front of instruments. A failure is no failure of the measurement."""
    facts = result.gateway
    assert facts is not None, "the caller made it"
    if not plan.has_place:
        why = f"its command does not name the server by {PLACE}"
        facts.not_observed = facts.stream_not_tried = why if plan.through.url is None else "mcpace does not start it"
        return
    try:
        progress.preparing("observing the gateway's own requests")
        observation.observe_requests(plan, direct, settings, progress, result.cases, facts)
    except (LabError, _core.Problem) as problem:
        facts.not_observed = str(problem)
    try:
        progress.preparing("trying a stream through the gateway")
        observation.try_stream(plan, direct, progress, facts)
    except (LabError, _core.Problem) as problem:
        facts.stream_not_tried = str(problem)
