"""Comparison of two runs, metric by metric.

Cases are matched by the subject's label, target, operation and tool; where that finds no partner, without the subject's
version (two releases of one SDK), then without the target (two addresses of one server). Cases without a partner are
reported. Trials and rounds are compared by ranks (:mod:`mcpace.lab.statistics.rank_interval`), a load's seconds by
batches (:mod:`mcpace.lab.statistics.block_interval`).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from mcpace.lab.compare import drift
from mcpace.lab.machine import new_run
from mcpace.lab.statistics import block_interval, rank_interval
from mcpace.report.model.comparison import (
    INSTRUMENTS,
    Attempt,
    BaseCase,
    Compared,
    Comparison,
    Method,
    Metric,
    Missing,
    Newcomer,
    SideFacts,
    Verdict,
)
from mcpace.report.model.drift import Level
from mcpace.report.model.load import LoadSecond
from mcpace.report.model.run import Case, Run
from mcpace.report.model.tokens import ComparedResult

Unit = Literal["s", "rps", "share", "bytes"]
Reason = Literal["slower", "broken", "new-finding", "drift"]
Place = tuple[str, str, str, str | None]
"""Subject, target, operation and tool."""
REASONS: tuple[Reason, ...] = get_args(Reason)

GRAVE = ("high", "medium")
STANDSTILL_S = 3
"""Seconds by which a load's longest standstill may grow before the load counts as worse, regardless of its means."""
FLOOR = 0.5
"""Number of successful replies assumed for a second without any, since the comparison takes logarithms."""
MORE_IS_BETTER: tuple[Metric, ...] = ("throughput",)
LEAST = 1e-15
"""Smallest value that a ratio may refer to."""
FEW_ERRORS = 0.001
"""Largest increase of the share of errors that is no breach."""


@dataclass(frozen=True)
class Figure:
    """Values of one metric on both sides."""

    metric: Metric
    unit: Unit
    base: float
    now: float


@dataclass(frozen=True)
class Ratio:
    """Ratio of the second side to the first with its interval, and the number of samples on each side."""

    ratio: float
    low: float
    high: float
    now_count: int
    base_count: int
    method: Method = "rank-sum"


def compare_runs(base: Run, now: Run, tolerance: float, drift_limit: Level | None = None) -> Comparison:
    """Compares ``now`` with ``base``. A ``tolerance`` of 0.1 accepts values that are 10 % worse. Changes of the listing
    are red from the level ``drift_limit``.
    """
    result = compare_pairs(*match_cases(base.cases, now.cases), tolerance, drift_limit)
    result.interleaved = False
    result.warnings = _comparability_warnings(base, now)
    result.base, result.now = _side_facts(base), _side_facts(now)
    return result


def run_of(base: Run, now: Run, tolerance: float, names: tuple[str, str] | None = None) -> Run:
    """Compares two runs and returns the comparison as a run with the cases of the second side.

    ``names`` are the names of both sides in the run's options.
    """
    sides = dict(zip(("base", "run"), names, strict=True)) if names else {}
    result = new_run("compare", {**sides, "tolerance": tolerance})
    result.cases, result.versions = now.cases, now.versions
    result.dependencies_as_of = now.dependencies_as_of
    result.comparison = compare_runs(base, now, tolerance)
    return result


def compare_pairs(
    pairs: Sequence[tuple[Case, Case]],
    only_base: Sequence[Case],
    only_now: Sequence[Case],
    tolerance: float,
    drift_limit: Level | None = None,
) -> Comparison:
    """Compares two sides that were measured in turns, so that nothing else differs between them."""
    # Sides without a common case were asked for different operations, so the second side has lost none.
    strangers = not pairs and any(_is_measured(case) for case in only_now)
    result = Comparison(
        interleaved=True,
        tolerance=tolerance,
        base_cases=[base_case(then) for then, _ in pairs],
        only_base=[_missing_case(case) for case in only_base],
        only_now=[_missing_case(case) for case in only_now],
        attempts=[compare_cases(pairs, tolerance, [] if strangers else only_base)],
        drift_limit=drift_limit,
        drifts=drift.compare_cases(pairs),
        results=[result for base, now in pairs for result in _compared_results(base, now)],
    )
    set_verdict(result)
    return result


def _compared_results(base: Case, now: Case) -> Iterator[ComparedResult]:
    then = base.tokens_by_tool
    for tool, tokens in now.tokens_by_tool.items():
        if tool in then:
            yield ComparedResult(target=now.target, tool=tool, base_tokens=then[tool], now_tokens=tokens)


def compare_cases(pairs: Sequence[tuple[Case, Case]], tolerance: float, only_base: Sequence[Case] = ()) -> Attempt:
    """Compares all metrics of each pair. Operations that only the first side could complete are broken."""
    found = Attempt()
    names = {(base.subject.label(), base.target): (now.subject.label(), now.target) for base, now in pairs}
    for case in only_base:
        if _is_measured(case):
            # The second side lost the operation, so the entry has the second side's names.
            subject, target = names.get((case.subject.label(), case.target), (case.subject.label(), case.target))
            found.broken.append(_missing_case(case).model_copy(update={"subject": subject, "target": target}))
    for base, now in pairs:
        if _is_measured(base) and now.error and (not _is_measured(now) or now.given_up > base.given_up):
            found.broken.append(_missing_case(now))
        if _is_measured(base) and now.error and not _is_measured(now):
            continue
        found.rows += _metric_rows(base, now, tolerance)
        before, after = ({one.code for one in case.findings} - INSTRUMENTS for case in (base, now))
        found.new_findings += [_newcomer_case(now, code) for code in sorted(after - before)]
        found.gone_findings += [_newcomer_case(base, code) for code in sorted(before - after)]
    return found


def set_verdict(result: Comparison) -> None:
    """Sets the verdict: red if the same place went wrong in every attempt, for any reason.

    The reasons may differ, since a slower side may fail in the next attempt. Different places in different attempts are
    noise. A side that can't be reached counts as wrong in every place, since noise doesn't cause that. A change of the
    listing is red in any case: no noise causes it.
    """
    attempts = [_red_reasons(one) for one in result.attempts]
    doubtful = [_doubtful_places(one, result.tolerance) | set(_red_reasons(one)) for one in result.attempts]
    gone = [_is_gone(one) for one in result.attempts]
    # An unreachable side is broken in every place, including those without a comparison.
    red_places: list[dict[Place, set[Reason]]] = [
        {place: wrong.get(place) or ({"broken"} if is_gone else set()) for place in set().union(*attempts)}
        for wrong, is_gone in zip(attempts, gone, strict=True)
    ]
    reasons: set[Reason] = set()
    for place in red_places[-1]:
        if all(wrong[place] for wrong in red_places):
            # Reasons of every attempt are surest. Where the attempts share no reason, the last attempt counts.
            reasons |= set.intersection(*(wrong[place] for wrong in red_places)) or red_places[-1][place]
    if any(one.refused(result.drift_limit) for one in result.drifts):
        reasons.add("drift")
    result.reasons = [reason for reason in REASONS if reason in reasons]
    result.red = bool(result.reasons)
    result.inconclusive = not result.red and bool(set.intersection(*doubtful))
    result.judged = result.red or any(row.low is not None for row in result.attempts[-1].rows)


def _red_reasons(attempt: Attempt) -> dict[Place, set[Reason]]:
    """Reasons that make an attempt red, by place."""
    found: dict[Place, set[Reason]] = {}
    entries: list[tuple[Place, Reason]] = [(_entry_place(row), "slower") for row in attempt.rows if row.breach]
    entries += [(_entry_place(one), "broken") for one in attempt.broken]
    entries += [(_entry_place(one), "new-finding") for one in attempt.new_findings if one.severity in GRAVE]
    for place, reason in entries:
        found.setdefault(place, set()).add(reason)
    return found


def _doubtful_places(attempt: Attempt, tolerance: float) -> set[Place]:
    """Places where a value exceeds the tolerance, but its interval is not entirely beyond it."""
    return {
        _entry_place(row)
        for row in attempt.rows
        if row.ratio and row.low is not None and not row.breach and _worsening_ratio(row) > 1 + tolerance
    }


def _worsening_ratio(row: Compared) -> float:
    assert row.ratio is not None, "only rows with a ratio are held against the tolerance"
    return 1 / row.ratio if row.metric in MORE_IS_BETTER else row.ratio


def _is_gone(attempt: Attempt) -> bool:
    """Whether the second side couldn't be reached (to the end), or completed nothing that the first side did."""
    return bool(attempt.broken) and (not attempt.rows or any(one.operation == "connect" for one in attempt.broken))


def match_cases(base: Sequence[Case], now: Sequence[Case]) -> tuple[list[tuple[Case, Case]], list[Case], list[Case]]:
    """Matches cases: pairs in the order of ``now``, then the unmatched cases of the first and the second side."""
    pairs: dict[int, Case] = {}
    free = list(base)
    keys: tuple[Callable[[Case], object], ...] = (
        lambda case: (case.subject.label(), case.target, case.operation, case.tool, _layer_name(case)),
        lambda case: (case.subject.sdk, case.subject.mode, case.target, case.operation, case.tool, _layer_name(case)),
        lambda case: (case.subject.sdk, case.subject.mode, case.operation, case.tool, _layer_name(case)),
    )
    for key in keys:
        # A key that several cases share doesn't identify a partner.
        theirs = _unique_cases(free, key)
        ours = _unique_cases([case for place, case in enumerate(now) if place not in pairs], key)
        for place, case in enumerate(now):
            partner = theirs.get(key(case))
            if place not in pairs and partner is not None and key(case) in ours:
                pairs[place] = partner
                free = [one for one in free if one is not partner]
    left = [case for place, case in enumerate(now) if place not in pairs]
    return [(pairs[place], now[place]) for place in sorted(pairs)], free, left


def base_case(case: Case) -> BaseCase:
    """The first side of a pair, for the plot."""
    return BaseCase(
        subject=case.subject.label(),
        target=case.target,
        operation=case.operation,
        tool=case.tool,
        trials_s=case.trials_s,
        latency_s=case.latency_s,
    )


def _side_facts(run: Run) -> SideFacts:
    machine = run.machine
    return SideFacts(
        kind=run.kind,
        started=run.started,
        mcpace=run.mcpace,
        cpu=machine.cpu,
        cores=machine.cores,
        system=machine.system,
        architecture=machine.architecture,
        memory_bytes=machine.memory_bytes,
        python=machine.python,
    )


def _unique_cases(cases: Sequence[Case], key: Callable[[Case], object]) -> dict[object, Case]:
    keys = [key(case) for case in cases]
    times = Counter(keys)
    return {one: case for one, case in zip(keys, cases, strict=True) if times[one] == 1}


def _layer_name(case: Case) -> str:
    return case.layer.name if case.layer else ""


def _is_measured(case: Case) -> bool:
    return bool(case.trials_s or case.throughput_rps)


def _comparability_warnings(base: Run, now: Run) -> list[str]:
    machines = [
        (found.architecture, found.cpu, found.cores, found.memory_bytes >> 30) for found in (base.machine, now.machine)
    ]
    warnings = {
        "other-machine": machines[0] != machines[1],
        "other-system": base.machine.system != now.machine.system,
        "other-kind": _measurement_kind(base) != _measurement_kind(now),
        "other-options": _measurement_kind(base) == _measurement_kind(now)
        and _comparable_options(base) != _comparable_options(now),
        "other-mcpace": base.mcpace != now.mcpace,
        "partial": base.partial or now.partial,
        "instrument": any(
            one.code in INSTRUMENTS for run in (base, now) for case in run.cases for one in case.findings
        ),
        "not-interleaved": True,
    }
    return [code for code, is_so in warnings.items() if is_so]


def _measurement_kind(run: Run) -> str:
    """Kind of measurement: a gate measures like `measure`."""
    return "measure" if run.kind == "gate" else run.kind


def _comparable_options(run: Run) -> dict[str, object]:
    # Options that name the sides may differ, and a gate's tolerance doesn't affect the measurement.
    sides = ("target", "targets", "subjects", "revision", "recording", "behind", "beside", "base", "tolerance")
    options = {name: value for name, value in run.options.items() if name not in sides}
    # A gate always requests layer timings.
    return {"server_timing": True, **options} if run.kind == "gate" else options


def _metric_rows(base: Case, now: Case, tolerance: float) -> Iterator[Compared]:
    if base.trials_s and now.trials_s and base.throughput_rps is None:
        yield _time_row(base, now, tolerance)
    if base.server and now.server:
        yield from _round_rows(base, now, tolerance)
    elif base.throughput_rps is not None and now.throughput_rps is not None:
        yield from _throughput_rows(base, now, tolerance)
    if base.errors is not None and now.errors is not None:
        yield _error_row(base, now, *(_of_load(case) for case in (base, now)))
    elif base.failures or now.failures:
        yield _error_row(base, now, *(_of_trials(case) for case in (base, now)))


def _time_row(base: Case, now: Case, tolerance: float) -> Compared:
    warm = [case.trials_s if case.layer else case.trials_s[1:] or case.trials_s for case in (base, now)]
    theirs, ours = warm
    figure = Figure("time", "s", statistics.median(theirs), statistics.median(ours))
    return _compared_row(base, now, figure, _rank_ratio(ours, theirs), tolerance)


def _rank_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    if min(len(ours), len(theirs)) < rank_interval.MINIMUM_TRIALS or min(*ours, *theirs) <= LEAST:
        return None
    return Ratio(*rank_interval.ratio_interval(list(ours), list(theirs)), len(ours), len(theirs))


def _round_rows(base: Case, now: Case, tolerance: float) -> Iterator[Compared]:
    assert base.server and now.server
    theirs, ours = base.server.rounds, now.server.rounds
    figures: tuple[tuple[Metric, Unit, str], ...] = (
        ("throughput", "rps", "throughput_rps"),
        ("p50", "s", "p50_s"),
        ("p99", "s", "p99_s"),
        ("cpu", "s", "cpu_s_per_call"),
        ("memory", "bytes", "rss_bytes"),
    )
    for metric, unit, name in figures:
        then = [float(value) for one in theirs if (value := getattr(one, name)) is not None]
        here = [float(value) for one in ours if (value := getattr(one, name)) is not None]
        if then and here:
            first, second = statistics.median(then), statistics.median(here)
            yield _compared_row(base, now, Figure(metric, unit, first, second), _rank_ratio(here, then), tolerance)


def _throughput_rows(base: Case, now: Case, tolerance: float) -> Iterator[Compared]:
    theirs, ours = (_whole_seconds(case) for case in (base, now))
    yield _standstill_row(base, now, (theirs, ours))
    assert base.throughput_rps is not None and now.throughput_rps is not None
    ratio = block_interval.ratio_of_series(*([max(one.ok, FLOOR) for one in side] for side in (ours, theirs)))
    figure = Figure("throughput", "rps", base.throughput_rps, now.throughput_rps)
    yield _compared_row(base, now, figure, _series_ratio(ratio), tolerance)
    if base.latency_s is None or now.latency_s is None:
        return
    for metric in ("p50", "p90", "p99"):
        then = [value for one in theirs if (value := getattr(one, f"{metric}_s")) is not None]
        here = [value for one in ours if (value := getattr(one, f"{metric}_s")) is not None]
        first, second = getattr(base.latency_s, metric), getattr(now.latency_s, metric)
        ratio = block_interval.ratio_of_series(here, then)
        yield _compared_row(base, now, Figure(metric, "s", first, second), _series_ratio(ratio), tolerance)
    if base.cpu_s and now.cpu_s and base.latency_s.count and now.latency_s.count:
        first, second = base.cpu_s / base.latency_s.count, now.cpu_s / now.latency_s.count
        yield _compared_row(base, now, Figure("cpu", "s", first, second), None, tolerance)
    if base.rss_bytes and now.rss_bytes:
        yield _compared_row(
            base, now, Figure("memory", "bytes", float(base.rss_bytes), float(now.rss_bytes)), None, tolerance
        )


def _series_ratio(interval: tuple[float, float, float, int, int] | None) -> Ratio | None:
    return Ratio(*interval, method="bootstrap-t") if interval else None


def _whole_seconds(case: Case) -> list[LoadSecond]:
    # The last second may be incomplete.
    return [one for one in case.seconds or [] if not one.warm_up][:-1]


def _standstill_row(base: Case, now: Case, seconds: Sequence[Sequence[LoadSecond]]) -> Compared:
    """Compares the longest sequence of seconds without a successful reply, which means don't show."""
    first, second = (_longest_standstill(side) for side in seconds)
    worse = second - first >= STANDSTILL_S
    row = _compared_row(base, now, Figure("stall", "s", first, second), None, 0.0)
    return row.model_copy(update={"verdict": "worse" if worse else "same", "breach": worse})


def _longest_standstill(seconds: Sequence[LoadSecond]) -> float:
    stretches = (len(list(run)) for answered, run in groupby(one.ok > 0 for one in seconds) if not answered)
    return float(max(stretches, default=0))


def _of_load(case: Case) -> tuple[int, int]:
    return case.errors or 0, sum(one.count for one in (case.by_tool or {}).values())


def _of_trials(case: Case) -> tuple[int, int]:
    return len(case.failures), len(case.failures) + len(case.trials_s)


def _error_row(base: Case, now: Case, then: tuple[int, int], here: tuple[int, int]) -> Compared:
    """Compares the shares of failed calls. ``then`` and ``here``: failures and calls of each side."""
    first, second = (failed / count if count else 0.0 for failed, count in (then, here))
    (_, most), (least, _) = (
        block_interval.wilson_interval(min(failed, count), count) for failed, count in (then, here)
    )
    worse = least > most and second - first > FEW_ERRORS
    verdict: Verdict = "worse" if worse else "same" if first == second else "unclear"
    row = _compared_row(base, now, Figure("errors", "share", first, second), None, 0.0)
    update = {"method": "wilson", "verdict": verdict, "breach": worse, "base_count": then[1], "now_count": here[1]}
    return row.model_copy(update=update)


def _compared_row(
    base: Case,
    now: Case,
    figure: Figure,
    ratio: Ratio | None,
    tolerance: float,
) -> Compared:
    row = Compared(
        subject=now.subject.label(),
        base_subject=base.subject.label(),
        target=now.target,
        operation=_layer_name(now) or now.operation,
        tool=now.tool,
        metric=figure.metric,
        unit=figure.unit,
        base=figure.base,
        now=figure.now,
        ratio=figure.now / figure.base if figure.base > LEAST else None,
        verdict="unclear",
    )
    if ratio is None:
        return row
    row.ratio, row.low, row.high, row.method = ratio.ratio, ratio.low, ratio.high, ratio.method
    row.now_count, row.base_count = ratio.now_count, ratio.base_count
    row.sees = block_interval.smallest_detectable_ratio(ratio.low, ratio.high)
    row.verdict, row.breach = _metric_verdict(figure.metric, ratio.low, ratio.high, tolerance)
    return row


def _metric_verdict(metric: Metric, low: float, high: float, tolerance: float) -> tuple[Verdict, bool]:
    if metric in MORE_IS_BETTER:
        low, high = 1 / high, 1 / low
    limit = 1 + tolerance
    if low > 1:
        return "worse", low > limit
    if high < 1:
        return "better", False
    return ("same", False) if 1 / limit <= low and high <= limit else ("unclear", False)


def _entry_place(entry: Compared | Missing | Newcomer) -> Place:
    return entry.subject, entry.target, entry.operation, entry.tool


def _missing_case(case: Case) -> Missing:
    return Missing(
        subject=case.subject.label(),
        target=case.target,
        operation=_layer_name(case) or case.operation,
        tool=case.tool,
        error=case.error,
    )


def _newcomer_case(case: Case, code: str) -> Newcomer:
    found = next(one for one in case.findings if one.code == code)
    return Newcomer(
        subject=case.subject.label(),
        target=case.target,
        operation=case.operation,
        tool=case.tool,
        code=code,
        severity=found.severity,
        cost_s=found.cost_s,
    )
