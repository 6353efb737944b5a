"""Time that a gateway adds: percentiles and parts of the ledger of both paths, over paired rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from mcpace.lab.clients.measure import Session
from mcpace.lab.statistics.paired_difference import mean_difference, quantile, quantile_difference
from mcpace.report.model.gateway import AddedPart, AddedQuantile, Percentile
from mcpace.report.model.run import Operation

SHARES: dict[Percentile, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
OPERATIONS: tuple[Operation, ...] = ("connect", "list", "call")
NANOS = 1e9


def added_quantiles(direct: Session, through: Session) -> list[AddedQuantile]:
    """Percentiles of all operations that both paths completed. A percentile needs as many samples on each side as give
    one sample above it: 2, 10 or 100."""
    found = []
    for operation in OPERATIONS:
        theirs, ours = (_warm_seconds(session, operation) for session in (direct, through))
        counts = [sum(map(len, side)) for side in (theirs, ours)]
        for percentile, share in SHARES.items():
            if min(counts) < round(1 / (1 - share)):
                continue
            interval = quantile_difference(ours, theirs, share)
            values = [quantile([sample for one in side for sample in one], share) for side in (theirs, ours)]
            found.append(
                AddedQuantile(
                    operation=operation,  # type: ignore[arg-type]  # one of OPERATIONS
                    percentile=percentile,
                    direct_s=values[0],
                    through_s=values[1],
                    low_s=interval[0] if interval else None,
                    high_s=interval[1] if interval else None,
                    direct_count=counts[0],
                    through_count=counts[1],
                )
            )
    return found


def added_parts(direct: Session, through: Session) -> list[AddedPart]:
    """Parts of a call's ledger on both paths. Each round counts once, by the mean of its later calls."""
    pairs = [
        (theirs, ours)
        for theirs, ours in zip(_round_parts(direct), _round_parts(through), strict=False)
        if theirs and ours
    ]
    names = list(pairs[0][0]) if pairs else []
    found = []
    for name in names:
        theirs, ours = ([side[name] for side in sides] for sides in zip(*pairs, strict=True))
        interval = mean_difference([y - x for x, y in zip(theirs, ours, strict=True)])
        found.append(
            AddedPart(
                part=name,
                direct_s=statistics.fmean(theirs),
                through_s=statistics.fmean(ours),
                low_s=interval[0] if interval else None,
                high_s=interval[1] if interval else None,
            )
        )
    return found


def _warm_seconds(session: Session, operation: Operation) -> list[list[float]]:
    """Seconds of the later repetitions in each round; of the only one where a round has one. The first round of
    connects is cold and left out."""
    explained = session.facts.explained
    assert explained is not None, "the session has made its cases"
    seconds = {call: taken for call, taken, outcome, _ in explained.trials(operation) if outcome == "ok"}
    rounds = [
        [seconds[call] for call in (trial.calls[1:] or trial.calls) if call in seconds] if not trial.failure else []
        for trial in session.facts.trials
        if trial.operation == operation
    ]
    return [[], *rounds[1:]] if operation == "connect" and len(rounds) > 1 else rounds


def _round_parts(session: Session) -> Iterator[dict[str, float]]:
    """For each round the mean parts of its later calls in seconds; empty where the round failed."""
    explained = session.facts.explained
    assert explained is not None, "the session has made its cases"
    for trial in session.facts.trials:
        if trial.operation != "call":
            continue
        calls: Sequence[int] = trial.calls[1:] or trial.calls
        if trial.failure or not calls:
            yield {}
            continue
        sums = explained.sum(list(calls))
        yield {name: value / NANOS / max(sums["calls"], 1) for name, value in sums["parts"].items()}
