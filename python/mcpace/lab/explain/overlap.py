"""The smallest test of concurrency: two calls at once, and a ping while they run.

Two calls in one session first. Where they don't run in parallel, two calls in two sessions with the ping in a third
show whether the session is the reason, or the whole server waits.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Literal

from mcpace.lab.explain.ladder import Session, open_session
from mcpace.lab.load.plan import HttpTarget, LoadPlan
from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.report.model.ladder import Ladder, Overlap

REPEATS = 3
LEAST_CALL_S = 0.02
"""Shortest call that is tested. The start of two shorter calls is not simultaneous enough."""
PING_AFTER = 0.25
"""The ping is sent after this share of a call."""
ALONE, TWICE = 1.4, 1.7
"""A call takes as long as alone up to ALONE times its median, and as long as two from TWICE times."""
WAITED = 5
"""Fewest idle pings that a ping takes which waited. It also takes a quarter of a call."""
TO_THE_END = 0.75
"""Share of both calls that a ping takes which waited for their end. It is sent after an eighth of both."""


def overlap_calls(plan: LoadPlan, session: Session, ladder: Ladder, budget_s: float) -> None:
    """Adds the overlaps and the cause that they prove to ``ladder``, if a call is long enough and fits the budget.

    ``session`` makes the calls of one session, and is the first of two.
    """
    medians = {rung.code: rung.median_s for rung in ladder.rungs if rung.median_s is not None}
    call_s, ping_s = medians.get("tool"), medians.get("ping")
    if call_s is None or ping_s is None or call_s < LEAST_CALL_S or 2 * call_s > budget_s:
        return
    until = time.monotonic() + budget_s
    one = _measure_overlap([session, session], session, call_s, ping_s, until)
    ladder.overlaps.append(one)
    has_sessions = isinstance(plan.target, HttpTarget) and plan.revision < STATELESS_SINCE
    if one.order in ("serial", "shared") and has_sessions:
        with ExitStack() as stack:
            # A ping in a session of its own waits only where the whole server does.
            others = [stack.enter_context(open_session(plan)) for _ in range(2)]
            ladder.overlaps.append(_measure_overlap([session, others[0]], others[1], call_s, ping_s, until))
    ladder.cause = proven_cause(ladder, is_http=isinstance(plan.target, HttpTarget))


def proven_cause(ladder: Ladder, *, is_http: bool) -> str | None:
    """Code of the finding that the overlaps prove. A server over stdio may read one message at a time by design."""
    if not ladder.overlaps or not is_http:
        return None
    last = ladder.overlaps[-1]
    if any(one.order == "shared" for one in ladder.overlaps):
        # A loop that takes both calls before it sends a reply ends them together. Calls that share a processor end
        # together too, but let a ping pass.
        waited = all(
            one.order in ("serial", "shared") and one.ping_s >= TO_THE_END * one.both_s for one in ladder.overlaps
        )
        return "blocked-event-loop" if waited else None
    if ladder.overlaps[0].order != "serial":
        return None
    if last.sessions > 1 and last.order == "parallel" and not last.ping_waited:
        return "serial-session"
    return "blocked-event-loop" if last.order == "serial" and last.ping_waited else None


def _measure_overlap(callers: list[Session], other: Session, call_s: float, ping_s: float, until: float) -> Overlap:
    firsts: list[float] = []
    boths: list[float] = []
    pings: list[float] = []
    with ThreadPoolExecutor(len(callers)) as threads:
        for number in range(REPEATS):
            if number and time.monotonic() + boths[-1] > until:
                break
            start = time.monotonic()
            calls = [threads.submit(_call_until, caller) for caller in callers]
            time.sleep(PING_AFTER * call_s)
            sent = time.monotonic()
            other.ping()
            pings.append(time.monotonic() - sent)
            ends = sorted(call.result() for call in calls)
            firsts.append(ends[0] - start)
            boths.append(ends[-1] - start)
    first, both, ping = statistics.median(firsts), statistics.median(boths), statistics.median(pings)
    return Overlap(
        sessions=len(set(callers)),
        repeats=len(pings),
        first_s=first,
        both_s=both,
        ping_s=ping,
        order=_order_of(first / call_s, both / call_s),
        ping_waited=ping >= max(PING_AFTER * call_s, WAITED * ping_s),
    )


def _order_of(first: float, both: float) -> Literal["parallel", "serial", "shared", "unclear"]:
    """Order of two calls, by the ratios of their ends to the time of a call alone."""
    if both <= ALONE:
        return "parallel"
    if both < TWICE:
        return "unclear"
    return "serial" if first <= ALONE else "shared" if first >= TWICE else "unclear"


def _call_until(session: Session) -> float:
    session.call_tool()
    return time.monotonic()
