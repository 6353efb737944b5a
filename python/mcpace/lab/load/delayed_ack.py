"""``delayed-ack``, found in load results and proven by experiment.

A server that sends a reply in two small writes without TCP_NODELAY has its second write wait for the acknowledgement of
the first, which the client's kernel delays by some 40 ms. In a load's results that is a hill of calls at 40 ms and a
little more. A slow server has calls there too, so that a hill alone proves nothing: it only makes the experiment
worthwhile. The experiment is the same load with TCP_QUICKACK on our sockets, which changes nothing about the server:
where the hill vanishes, acknowledgements were what calls waited for. It is made with one connection too, where nothing
else could be waited for.

Design constraint: judging is pure; who drives the load hands results in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcpace.lab.load.histogram import at
from mcpace.report.model.contexts import DelayedAckInLoad
from mcpace.report.model.run import Finding
from mcpace.report.words import findings

CODE = DelayedAckInLoad.code

Buckets = Sequence[tuple[int, int]]

FROM_S, TO_S = 0.035, 0.060
"""Linux delays acknowledgements by 40 ms at least (TCP_DELACK_MIN); the rest is the machine's and the server's."""
SUSPECT_SHARE = 0.05
"""Of calls in the window beyond what lies beside it: with fewer, nothing would be gained by knowing."""
VANISHED = 0.2
"""A hill has vanished where this share of it is left, or less."""
SHRUNK = 0.5
BUSY_SHARE = 0.9
"""A server that is this busy has calls wait for its processor, wherever the hill is."""


@dataclass(frozen=True)
class Seen:
    """One load's results, as far as this is about them."""

    buckets: Buckets
    """Of times from a call's sending to its reply."""
    mean_s: float
    calls: int
    reused_share: float
    """Of requests that went over a connection that had carried one before."""
    cpu_share: float | None = None
    """Of the processors that it might use, how much the server worked; ``None`` where it wasn't looked at."""


@dataclass(frozen=True)
class Experiment:
    """Short loads on one server, alike but for TCP_QUICKACK."""

    plain: Seen
    quick: Seen
    alone_plain: Seen
    alone_quick: Seen
    """With one connection."""


def hill(buckets: Buckets) -> float:
    """The share of calls in the window beyond what its neighbourhood explains (0 to 1).

    The neighbourhood is as wide as the window on either side. The denser side says how many calls the window would have
    were nothing special about it: a slope is no hill.
    """
    width = TO_S - FROM_S
    total = sum(count for _, count in buckets)
    if not total:
        return 0.0

    def within(low: float, high: float) -> int:
        return sum(count for bound, count in buckets if low <= bound / 1e9 < high)

    around = max(within(FROM_S - width, FROM_S), within(TO_S, TO_S + width))
    return max(within(FROM_S, TO_S) - around, 0) / total


def suspected(seen: Seen) -> bool:
    """Whether the experiment is worth its time: a hill, connections that are used again, a server with time left."""
    idle = seen.cpu_share is None or seen.cpu_share < BUSY_SHARE
    return idle and seen.reused_share > 0.5 and hill(seen.buckets) >= SUSPECT_SHARE


def judged(before: Seen, experiment: Experiment | None) -> Finding | None:
    """The finding where it was suspected and the experiment confirmed it.

    Without an experiment the suspicion is told as one; one that contradicts leaves nothing.
    """
    if not suspected(before) or (experiment is not None and not confirmed(experiment)):
        return None
    return _finding(before, experiment)


def confirmed(experiment: Experiment) -> bool:
    """Whether there is a hill with one connection, where nobody waits for others, and it vanishes with TCP_QUICKACK.

    Under the load it must shrink too; what is left there may be queueing, which TCP_QUICKACK doesn't change.
    """
    alone, busy = hill(experiment.alone_plain.buckets), hill(experiment.plain.buckets)
    return (
        min(alone, busy) >= SUSPECT_SHARE
        and hill(experiment.alone_quick.buckets) <= VANISHED * alone
        and hill(experiment.quick.buckets) <= SHRUNK * busy
        and experiment.alone_quick.mean_s < experiment.alone_plain.mean_s
        and experiment.quick.mean_s < experiment.plain.mean_s
    )


def _finding(before: Seen, experiment: Experiment | None) -> Finding:
    share = hill(before.buckets)
    # What lies in the hill, against the calls outside it: what acknowledging at once would save a call.
    cost = before.mean_s - experiment.quick.mean_s if experiment else share * FROM_S
    cost = max(cost, 0.0)
    context = DelayedAckInLoad(
        share=round(share, 4),
        from_s=FROM_S,
        to_s=TO_S,
        p50_s=at(before.buckets, 0.5),
        mean_s=before.mean_s,
        cpu_share=None if before.cpu_share is None else round(before.cpu_share, 4),
    )
    if experiment:
        of_experiment = {
            "quick_share": round(hill(experiment.quick.buckets), 4),
            "quick_mean_s": experiment.quick.mean_s,
            "quick_p50_s": at(experiment.quick.buckets, 0.5),
            "alone_share": round(hill(experiment.alone_plain.buckets), 4),
            "alone_p50_s": at(experiment.alone_plain.buckets, 0.5),
            "alone_quick_p50_s": at(experiment.alone_quick.buckets, 0.5),
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
