"""Tables of a gateway: added time by percentile, the ledger of a call on both paths, load, and changes."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.gateway import GatewayFacts, GatewayLoad
from mcpace.report.table import Table
from mcpace.report.words.gateway import OPERATIONS, change_cells, interval_words, notes, signed
from mcpace.report.words.quantities import clean, count, duration, ratio_figure

MOST_CHANGES = 60


def gateway_tables(facts: GatewayFacts) -> Iterator[Table]:
    """All tables of a gateway."""
    if facts.quantiles:
        yield _quantile_table(facts)
    if facts.parts:
        yield _ledger_table(facts)
    if facts.load is not None:
        yield _load_table(facts.load)
    if facts.changes or facts.not_observed or facts.stream_not_tried:
        yield _change_table(facts)


def _quantile_table(facts: GatewayFacts) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            f"{OPERATIONS[one.operation]}, {one.percentile}",
            duration(one.direct_s),
            duration(one.through_s),
            signed(one.through_s - one.direct_s),
            interval_words(one.low_s, one.high_s),
        )
        for one in facts.quantiles
    ]
    return Table("Time that the gateway adds", ("", "direct", "through", "added", "95 % interval"), rows)


def _ledger_table(facts: GatewayFacts) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            clean(one.part, 40),
            duration(one.direct_s),
            duration(one.through_s),
            signed(one.through_s - one.direct_s),
            interval_words(one.low_s, one.high_s),
        )
        for one in facts.parts
        if one.direct_s or one.through_s
    ]
    sums = [sum(values) for values in zip(*((one.direct_s, one.through_s) for one in facts.parts), strict=True)]
    rows.append(("in all", duration(sums[0]), duration(sums[1]), signed(sums[1] - sums[0]), ""))
    told = ["The client sees a gateway as a part of the server: the gateway is what `server` and `response` add."]
    inside = facts.inside
    if inside is not None:
        own_s = inside.call_s - inside.server_s
        told.append(
            f"With a recorder between the gateway and the server, {count(inside.calls, 'call')} took "
            f"{duration(inside.call_s)} at the mean: {duration(inside.server_s)} at the server and the recorder, in "
            f"{count(inside.requests, 'request')} a call, and {duration(own_s)} in the gateway and on the way "
            "to it."
        )
    return Table("Ledger of a call", ("mean", "direct", "through", "gateway", "95 % interval"), rows, notes=told)


def _load_table(load: GatewayLoad) -> Table:
    rows: list[tuple[str, ...]] = []
    if load.turns:
        times = [load.direct_s, load.through_s]
        rows.append(("calls a second", f"{load.direct_rps:,.0f}", f"{load.through_rps:,.0f}", _ratio_words(load)))
        for name in ("p50", "p90", "p99"):
            cells = [duration(getattr(one, name)) if one is not None else "–" for one in times]
            rows.append((name, *cells, ""))
        rows.append(("errors", f"{load.direct_errors:,}", f"{load.through_errors:,}", ""))
    told = [f"The load failed: {clean(load.error, 300)}."] if load.error else []
    if load.saturated:
        told.append("The load generator was the limit in a turn: the server or the gateway may be faster.")
    title = f"Load of {count(load.vus, 'user')}"
    where = f"{load.turns} turns of {load.turn_s:g} s each" if load.turns else ""
    return Table(title, ("", "direct", "through", "ratio (95 %)"), rows, where, told)


def _ratio_words(load: GatewayLoad) -> str:
    if load.ratio is None:
        return "–"
    is_known = load.low is not None and load.high is not None
    interval = f" ({ratio_figure(load.low or 0.0)}–{ratio_figure(load.high or 0.0)})" if is_known else ""
    return f"{ratio_figure(load.ratio)}{interval}"


def _change_table(facts: GatewayFacts) -> Table:
    rows: list[tuple[str, ...]] = [change_cells(one) for one in facts.changes[:MOST_CHANGES]]
    more = len(facts.changes) - len(rows)
    told = [f"{count(more, 'more change')}."] if more else []
    if not facts.changes:
        told.append("No change was seen.")
    return Table("What the gateway changes", ("", "direct", "through"), rows, notes=[*told, *notes(facts)])
