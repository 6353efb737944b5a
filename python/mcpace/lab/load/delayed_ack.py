"""Finding ``delayed-ack``: suspected from load results and confirmed by an experiment.

When a server without TCP_NODELAY sends a reply in two small writes, the second write waits for the acknowledgement of
the first, which the client's kernel delays by some 40 ms. The latencies of a load then have a hill slightly above
40 ms. A slow server can produce such a hill too, so the hill alone proves nothing; it only justifies the experiment.

The experiment repeats the load with TCP_QUICKACK on the client's sockets, which changes nothing about the server. If
the hill vanishes, calls waited for acknowledgements. The experiment is also made with one connection, where calls can't
wait for each other.

Design constraint: These functions are pure. The caller runs the load and passes its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcpace.lab.load.histogram import quantile_seconds
from mcpace.report.model.contexts import DelayedAckInLoad
from mcpace.report.model.run import Finding
from mcpace.report.words import findings

CODE = DelayedAckInLoad.code

Buckets = Sequence[tuple[int, int]]

FROM_S, TO_S = 0.035, 0.060
"""Window of the hill. Linux delays acknowledgements by at least 40 ms (TCP_DELACK_MIN); the rest is processing time."""
SUSPECT_SHARE = 0.05
"""Smallest share of calls in the hill. A smaller hill isn't worth reporting."""
VANISHED = 0.2
"""A hill has vanished if at most this share of it is left."""
SHRUNK = 0.5
BUSY_SHARE = 0.9
"""Processor share above which calls wait for the server's processor, so a hill has another cause."""


@dataclass(frozen=True)
class LoadResult:
    """Results of one load that this finding needs."""

    buckets: Buckets
    """Histogram of times from sending a call to its reply."""
    mean_s: float
    calls: int
    reused_share: float
    """Share of requests on a connection that had already carried a request."""
    cpu_share: float | None = None
    """Share of its available processors that the server used; ``None`` where it wasn't measured."""


@dataclass(frozen=True)
class Experiment:
    """Results of short loads on one server, with and without TCP_QUICKACK."""

    plain: LoadResult
    quick: LoadResult
    alone_plain: LoadResult
    alone_quick: LoadResult
    """``alone_…``: with one connection."""


def excess_share(buckets: Buckets) -> float:
    """Share of calls (0 to 1) in the window that exceed the expectation from its neighbourhood.

    The neighbourhood has the window's width on either side. Its denser side gives the expected number of calls, so that
    a slope doesn't count as a hill.
    """
    width = TO_S - FROM_S
    total = sum(count for _, count in buckets)
    if not total:
        return 0.0

    def calls_between(low: float, high: float) -> int:
        return sum(count for bound, count in buckets if low <= bound / 1e9 < high)

    around = max(calls_between(FROM_S - width, FROM_S), calls_between(TO_S, TO_S + width))
    return max(calls_between(FROM_S, TO_S) - around, 0) / total


def is_suspected(result: LoadResult) -> bool:
    """Whether the experiment is worth its time: a hill, reused connections, and a server that is not busy."""
    idle = result.cpu_share is None or result.cpu_share < BUSY_SHARE
    return idle and result.reused_share > 0.5 and excess_share(result.buckets) >= SUSPECT_SHARE


def suspected_finding(before: LoadResult, experiment: Experiment | None) -> Finding | None:
    """Returns the finding, or ``None`` where it isn't suspected or the experiment contradicts it.

    Without an experiment, the finding is reported as a suspicion with medium confidence.
    """
    if not is_suspected(before) or (experiment is not None and not is_confirmed(experiment)):
        return None
    return _delayed_ack_finding(before, experiment)


def is_confirmed(experiment: Experiment) -> bool:
    """Whether there is a hill with one connection, and TCP_QUICKACK makes it vanish.

    Under the full load the hill must shrink too. Its rest may be queueing, which TCP_QUICKACK doesn't change.
    """
    alone, busy = excess_share(experiment.alone_plain.buckets), excess_share(experiment.plain.buckets)
    return (
        min(alone, busy) >= SUSPECT_SHARE
        and excess_share(experiment.alone_quick.buckets) <= VANISHED * alone
        and excess_share(experiment.quick.buckets) <= SHRUNK * busy
        and experiment.alone_quick.mean_s < experiment.alone_plain.mean_s
        and experiment.quick.mean_s < experiment.plain.mean_s
    )


def _delayed_ack_finding(before: LoadResult, experiment: Experiment | None) -> Finding:
    share = excess_share(before.buckets)
    # Mean time that a call would save with immediate acknowledgements.
    cost = before.mean_s - experiment.quick.mean_s if experiment else share * FROM_S
    cost = max(cost, 0.0)
    context = DelayedAckInLoad(
        share=round(share, 4),
        from_s=FROM_S,
        to_s=TO_S,
        p50_s=quantile_seconds(before.buckets, 0.5),
        mean_s=before.mean_s,
        cpu_share=None if before.cpu_share is None else round(before.cpu_share, 4),
    )
    if experiment:
        of_experiment = {
            "quick_share": round(excess_share(experiment.quick.buckets), 4),
            "quick_mean_s": experiment.quick.mean_s,
            "quick_p50_s": quantile_seconds(experiment.quick.buckets, 0.5),
            "alone_share": round(excess_share(experiment.alone_plain.buckets), 4),
            "alone_p50_s": quantile_seconds(experiment.alone_plain.buckets, 0.5),
            "alone_quick_p50_s": quantile_seconds(experiment.alone_quick.buckets, 0.5),
        }
        context = context.model_copy(update=of_experiment)
    return Finding(
        code=CODE,
        severity="high" if cost > before.mean_s / 2 else "medium",
        confidence="confirmed" if experiment else "medium",
        confidence_reason="vanishes-with-quick-ack" if experiment else "experiment-not-made",
        cost_s=cost,
        calls=round(share * before.calls),
        of_calls=before.calls,
        context=context.facts(),
        disproof="acknowledge-at-once",
        advice=findings.advice_for(CODE, context.facts()),
    )
