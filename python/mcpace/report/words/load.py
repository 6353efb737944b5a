"""The sentences for load: results, failures by operation, turning points, the limiting side.

Design constraint: a sentence states only facts that the Run holds. Text of a peer is cleaned here.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from mcpace.report.model.load import LoadFacts, LoadOperation, LoadSecond, LoadThreshold, LoadWorker
from mcpace.report.model.run import Case, Run
from mcpace.report.words.context import number
from mcpace.report.words.quantities import clean, count, duration, figure, join_words, share, times

ERRORS: dict[str, str] = {
    "connect": "no connection",
    "reset": "connection reset",
    "timeout": "no reply in time",
    "http_status": "unexpected HTTP status",
    "redirect": "redirected elsewhere",
    "not_mcp": "rubbish or half a reply",
    "wrong_id": "reply to another id",
    "jsonrpc_error": "JSON-RPC error",
    "tool_error": "tool error",
    "session_lost": "session lost",
    "too_large": "reply too large",
    "exhausted": "this machine has no more ports or descriptors",
    "process_exit": "the process ended",
    "assertion": "not the expected reply",
}
"""Descriptions of the kinds of errors."""

LIMITS: dict[str, str] = {
    "late-starts": "its own calls started behind schedule",
    "threads-busy": "its threads had no time left, replies waited unread",
}
"""Signs that the generator was the limit, by their codes."""

SLOWER = 5.0
"""The verdict mentions a slowdown where the later median is at least this many times the earlier one."""
STRETCH = 2
"""Minimum number of seconds before and after a turning point."""
MOST_STRETCHES = 300
SHOWN_TARGET = 80
MOST_NAMES = 3
LATE_REPORT_S = 1.0
"""A worker's report is late from here on: it has one each second."""


def sentences(run: Run) -> list[str]:
    """The verdict on a load."""
    told: list[str] = []
    for case in run.cases:
        told += _case_sentences(case)
    return told or ["Nothing was measured."]


def model_words(model: dict[str, Any]) -> str:
    """The requested load: ``50 users`` or ``1,000 calls/s due (poisson)``, with the ends of the ramps."""
    closed = model.get("kind") != "open"
    ramps = model.get("stages")
    stages = [number(one, "to") for one in ramps if isinstance(one, dict)] if isinstance(ramps, list) else []
    start = number(model, "vus" if closed else "rate") or 0.0
    figures = " → ".join(figure_of(value) for value in [start, *stages] if value is not None)
    if closed:
        return f"{figures} {'user' if figures == '1' else 'users'}"
    return f"{figures} calls/s due ({clean(model.get('arrivals', 'constant'), 20)})"


def figure_of(value: float) -> str:
    """A number of calls or users: ``50``, ``12,345``, ``0.5``."""
    return f"{value:,.0f}" if value == int(value) or value >= 100 else figure(value)


def error_words(kind: str) -> str:
    """Description of a kind of error."""
    return ERRORS.get(kind, clean(kind, 40).replace("_", " "))


def errors_of(operation: LoadOperation) -> str:
    """``12 × no reply in time, 3 × tool error``."""
    ordered = sorted(operation.errors.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{number:,} × {error_words(kind)}" for kind, number in ordered)


def threshold_words(threshold: LoadThreshold) -> str:
    """``it was 62 ms, 12 ms beyond the limit``: the measured value, and the amount by which it misses the limit."""
    if threshold.actual is None:
        return "nothing was measured that it could be held against"
    actual = threshold_figure(threshold.actual, threshold.unit)
    if threshold.met:
        return f"it was {actual}"
    beyond = threshold_figure(abs(threshold.actual - threshold.limit), threshold.unit)
    if threshold.actual == threshold.limit:
        return f"it was exactly {actual}"
    return f"it was {actual}, {beyond} beyond the limit"


def threshold_figure(value: float, unit: str) -> str:
    """A threshold's figure in its unit."""
    match unit:
        case "s":
            return duration(value)
        case "share":
            return f"{100 * value:.3g} %"
        case "rps":
            return f"{figure(value)} calls/s"
        case _:
            return count(value, "error")


def limit_words(case: Case) -> str:
    """The reason why the generator was the limit; empty where it was not."""
    if case.load is None or not case.saturated:
        return ""
    reason = case.load.engine.reason or ""
    why = LIMITS.get(reason, clean(reason, 60).replace("-", " "))
    return f"generator-limited{f' ({why})' if why else ''}: these figures are the generator's, not the target's"


def missing_words(load: LoadFacts) -> str:
    """The part of the load that its workers did not make; empty where nothing is missing."""
    missing = [worker for worker in load.workers if worker.missing_share > 0]
    if not missing:
        return ""
    names = join_words([clean(worker.place, 40) for worker in missing[:MOST_NAMES]])
    more = f" and {len(missing) - MOST_NAMES} more" if len(missing) > MOST_NAMES else ""
    part = share(sum(worker.missing_share for worker in missing), 1)
    return f"{part} of the load is missing, the part of {names}{more}"


def worker_remark(worker: LoadWorker) -> str:
    """The reason why a worker's part is missing or questionable."""
    reason = clean(worker.reason or "", 200).rstrip(".")
    if worker.state == "refused":
        return f"no part: {reason}" if reason else "no part"
    if worker.state == "lost":
        since = f"lost, counted up to second {worker.counted_s:.0f}" if worker.counted_s else "lost, nothing counted"
        return f"{since}: {reason}" if reason else since
    remarks = ["generator-limited"] if worker.saturated else []
    if worker.report_late_s >= LATE_REPORT_S:
        remarks.append(f"its counts arrived up to {duration(worker.report_late_s)} late: it or its network stood still")
    if worker.never_started:
        remarks.append(f"{count(worker.never_started, 'due call')} never started")
    return "; ".join(remarks)


def worker_notes(load: LoadFacts) -> list[str]:
    """The meaning of the columns, with the figures of all workers together."""
    notes = []
    known = [worker for worker in load.workers if worker.uncertainty_s is not None]
    if known:
        largest_s = max(worker.uncertainty_s or 0.0 for worker in known)
        notes.append(
            "clock: time of day minus that of this machine; start: after the agreed instant; both within "
            f"{duration(largest_s)}."
        )
    starts = [worker.start_skew_s for worker in known if worker.start_skew_s is not None]
    if len(starts) > 1:
        notes.append(f"The workers started within {duration(max(starts) - min(starts))} of each other.")
    if missing := missing_words(load):
        notes.append(f"{missing}. Calls of a lost worker after its last report are in no figure.")
    return notes


def due_seconds(case: Case) -> list[LoadSecond]:
    """The seconds in which calls were due, including the warm-up. Replies after the end are only in the totals."""
    if case.load is None:
        return []
    end_s = case.load.warm_up_s + case.load.measured_s
    return [second for second in case.seconds or [] if second.at_s + 0.5 <= end_s or second.at_s < 0.5]


def lateness_words(late_s: float) -> str:
    """The delay between the due time of calls and their start."""
    if late_s < 1e-6:
        return "calls started when they were due"
    return f"99 % of the calls started within {duration(late_s)} of their due time"


def length_words(case: Case) -> str:
    """``10.0 s after 1.00 s warm-up``."""
    assert case.load is not None, "a case of load"
    warm_up = f"{duration(case.load.warm_up_s)} warm-up" if case.load.warm_up_s else "no warm-up"
    return f"{duration(case.load.measured_s)} after {warm_up}"


def turning_points(seconds: Sequence[LoadSecond]) -> list[str]:
    """The turning points of the time series: the time of errors, the last success, a slowdown of the target."""
    return [*_error_period(seconds), *_last_success(seconds), *_slowdown(seconds)]


def _case_sentences(case: Case) -> Iterator[str]:
    load = case.load
    if load is None:
        return
    target = clean(case.target, SHOWN_TARGET)
    what = f" of {clean(case.tool, 40)}" if case.tool else ""
    failed = case.errors or 0
    ended = sum(one.count for one in (case.by_tool or {}).values())
    if case.latency_s is None:
        yield _no_replies(load, f"{what} at {target}", failed)
    else:
        latency = case.latency_s
        yield (
            f"{target} answered {figure_of(case.throughput_rps or 0.0)} calls/s{what} "
            f"{'of' if load.model.get('kind') == 'open' else 'to'} {model_words(load.model)}: "
            f"p50 {duration(latency.p50)}, p99 {duration(latency.p99)}, "
            + (f"{count(failed, 'error')} ({share(failed, ended)} of calls)." if failed else "no errors.")
        )
    if load.dropped:
        yield f"{load.dropped:,} of {load.intended:,} calls that were due never started."
    if missing := missing_words(load):
        yield f"{missing}."
    if load.failure:
        yield f"The load could not be finished: {clean(load.failure).rstrip('.')}."
    if load.acknowledgement_share:
        yield (
            f"{share(load.acknowledgement_share, 1)} of calls took 35 to 60 ms, as calls do that wait for a delayed "
            f"TCP acknowledgement; mcpace explain {target} can tell."
        )
    yield from turning_points(due_seconds(case))
    if limit := limit_words(case):
        yield f"It was {limit}."
    missed = [threshold for threshold in load.thresholds if not threshold.met]
    if missed:
        names = join_words([clean(one.text, 40) for one in missed])
        yield f"{len(missed)} of {count(len(load.thresholds), 'threshold')} not met: {names}."


def _no_replies(load: LoadFacts, where: str, failed: int) -> str:
    if failed:
        return f"Every call{where} failed: {count(failed, 'error')}."
    if load.ended == "stopped":
        return f"The load{where} was stopped before anything was measured."
    if not load.intended:
        return f"No call{where} was due in {duration(load.measured_s)}."
    return f"No call{where} finished before the load did."


def _error_period(seconds: Sequence[LoadSecond]) -> Iterator[str]:
    first = next((second for second in seconds if second.errors), None)
    if first is None or not any(second.ok and not second.errors for second in seconds):
        return
    last = next(second for second in reversed(seconds) if second.errors)
    if first is last:
        yield f"All errors fell into second {first.at_s:.0f}."
    elif last is not seconds[-1]:
        yield f"Errors came from second {first.at_s:.0f} to {last.at_s:.0f}."
    else:
        yield f"Errors began in second {first.at_s:.0f}."


def _last_success(seconds: Sequence[LoadSecond]) -> Iterator[str]:
    good = [number for number, second in enumerate(seconds) if second.ok]
    if good and len(seconds) - 1 - good[-1] >= STRETCH:
        yield f"No call succeeded after second {seconds[good[-1]].at_s:.0f}."


def _slowdown(seconds: Sequence[LoadSecond]) -> Iterator[str]:
    timed = [(second.at_s, second.p50_s) for second in seconds if second.p50_s]
    # A very long load is sampled, because each second is compared with all others.
    timed = timed[:: -(-len(timed) // MOST_STRETCHES) or 1]
    for split in range(STRETCH, len(timed) - STRETCH + 1):
        before = statistics.median(value for _, value in timed[:split])
        after = statistics.median(value for _, value in timed[split:])
        at_s, own = timed[split]
        if min(own, after) >= SLOWER * before:
            ratio = times(after / before)
            yield f"From second {at_s:.0f} on it was {ratio} slower: p50 {duration(after)} after {duration(before)}."
            return
