"""The sentences of a comparison of servers.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.run import Case, Run
from mcpace.report.model.servers import RateRatio, ServerCap, ServerComparison
from mcpace.report.words.context import number
from mcpace.report.words.quantities import clean, count, duration, join_words, ratio_figure, size, times

LONGEST_NAME = 60


def sentences(run: Run) -> list[str]:
    """The verdict: the fastest server, and all problems."""
    measured = [case for case in run.cases if case.throughput_rps]
    if not measured:
        early = run.partial and not any(case.error or case.unsupported for case in run.cases)
        return ["No server had a turn before the end." if early else "No server could be measured."]
    told = [_fastest_server(run, measured)] if len(measured) > 1 else [_single_server(measured[0])]
    told += _cause_sentences(measured)
    if failed := [case for case in measured if case.errors]:
        told.append(f"Calls failed at {join_words([f'{name(case)} ({case.errors or 0:,})' for case in failed])}.")
    limited = [case for case in measured if case.saturated]
    if limited:
        told.append(f"The load generator was the limit at {join_words([name(case) for case in limited])}.")
    missing = [case for case in run.cases if not case.throughput_rps and not case.unsupported]
    if failed := [case for case in missing if case.error or not run.partial]:
        told.append(
            f"{count(len(failed), 'server')} could not be measured: {join_words([name(case) for case in failed])}."
        )
    if waiting := len(missing) - len(failed):
        told.append(f"{count(waiting, 'server')} had no turn before the end.")
    return told


def name(case: Case) -> str:
    """The server's label, as users type it."""
    return clean(case.subject.label(), LONGEST_NAME)


def ratio_words(ratio: RateRatio | None, *, interval: bool = True) -> str:
    """``3.2× (3.0 to 3.4)``."""
    if ratio is None:
        return ""
    text = times(ratio.ratio)
    if ratio.low is None or ratio.high is None or not interval:
        return text
    return f"{text} ({ratio_figure(ratio.low)} to {ratio_figure(ratio.high)})"


def cap_words(cap: ServerCap) -> str:
    """The limits on each server, and the mechanism that enforced them."""
    cpus = count(cap.cpus, "CPU")
    if cap.by == "cgroup":
        memory = f" and {size(cap.memory_bytes)} of memory" if cap.memory_limited and cap.memory_bytes else ""
        return f"each server had {cpus}{memory}, by a control group of its own"
    where = (
        f"the load and what stands behind the servers had {count(len(cap.load_cores), 'other')}"
        if cap.load_cores
        else "the load and what stands behind the servers shared them"
    )
    return f"each server had {cpus} by affinity, and memory without limit (no control groups here); {where}"


def model_words(common: ServerComparison) -> str:
    """``50 users``, ``1,000 calls/s``."""
    if common.model.get("kind") == "open":
        return f"{number(common.model, 'rate') or 0:,.0f} calls/s, whatever the server does"
    return f"{number(common.model, 'vus') or 0:,.0f} users, each calling again once it has its reply"


def conditions(run: Run) -> Iterator[str]:
    """The conditions of the comparison, one sentence each."""
    common = run.servers
    if common is None:
        return
    tools = join_words([clean(tool, 40) for tool in common.operations])
    yield (
        f"Load: {tools}, {model_words(common)}; {count(common.rounds, 'round')} of {duration(common.round_s)} after "
        f"{duration(common.round_warm_up_s)} that is left out, servers in turn and there and back, the others stopped."
    )
    session = {"user": "a session a user", "call": "a session a call", "none": "no sessions"}.get(common.session, "")
    yield (
        f"Protocol: {clean(common.revision, 20)}, {session}, servers {clean(common.state, 20)}. Counted: calls whose "
        "reply was parsed and has the right id and no error; initialize is apart."
    )
    yield f"Cap: {cap_words(common.cap)}."
    if common.behind:
        behind = [f"{clean(what, 40)} {clean(version, 40)}" for what, version in common.behind.items()]
        yield f"Behind: {join_words(behind)}."
    floor = common.floor
    if floor is not None and not floor.error:
        ceiling = ""
        if floor.ceiling_rps:
            ceiling = (
                f"; the generator was {round(100 * floor.engine_busy)} % busy at that and is limited to about "
                f"{floor.ceiling_rps:,.0f}/s"
            )
        yield f"Floor: a server that does nothing did {floor.throughput_rps:,.0f} calls/s{ceiling}."
    elif floor is not None:
        yield f"Floor: there is none: {clean(floor.error, 200)}."


def _fastest_server(run: Run, measured: list[Case]) -> str:
    best = max(measured, key=lambda case: case.throughput_rps or 0.0)
    common = run.servers
    if common is not None and common.model.get("kind") == "open":
        timed = [case for case in measured if case.latency_s]
        best = min(timed, key=lambda case: case.latency_s.p99 if case.latency_s else 0.0, default=best)
        worst = max(timed, key=lambda case: case.latency_s.p99 if case.latency_s else 0.0, default=best)
        if best.latency_s and worst.latency_s:
            return (
                f"At that rate 99 % of calls took up to {duration(best.latency_s.p99)} with {name(best)} and "
                f"{duration(worst.latency_s.p99)} with {name(worst)}."
            )
    least = min(measured, key=lambda case: case.throughput_rps or 0.0)
    ratio = _throughput_ratio(best, least)
    return (
        f"{name(best)} did most, {best.throughput_rps or 0:,.0f} calls/s: {times(ratio)} what {name(least)} did, "
        f"{least.throughput_rps or 0:,.0f}."
    )


def _throughput_ratio(best: Case, least: Case) -> float:
    """The ratio of two servers' throughputs, computed from their ratios to the first server where possible, so that it
    agrees with the table."""
    seen = [case.server.ratio.ratio if case.server and case.server.ratio else None for case in (best, least)]
    match seen:
        case [None, float(below)] if below > 0:
            return 1 / below
        case [float(above), None]:
            return above
        case [float(above), float(below)] if below > 0:
            return above / below
    return (best.throughput_rps or 0.0) / (least.throughput_rps or 1.0)


def _single_server(case: Case) -> str:
    return f"{name(case)} did {case.throughput_rps or 0:,.0f} calls/s."


def _cause_sentences(measured: list[Case]) -> Iterator[str]:
    slowed = [(case, finding) for case in measured for finding in case.findings if finding.code == "delayed-ack"]
    if proven := [name(case) for case, finding in slowed if finding.confidence == "confirmed"]:
        yield (
            f"Calls at {join_words(proven)} wait for delayed TCP acknowledgements: "
            "it is the sockets' setting, not the server's work."
        )
    if suspected := [name(case) for case, finding in slowed if finding.confidence != "confirmed"]:
        yield (
            f"Calls at {join_words(suspected)} look as if they waited for delayed TCP acknowledgements; "
            "the experiment that would show it was not made."
        )
