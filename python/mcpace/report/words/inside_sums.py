"""Words for what a server does under load, and for the time that looking inside adds to a call."""

from __future__ import annotations

from mcpace.report.model.inside import AddedTime, InsideSums
from mcpace.report.model.run import Case
from mcpace.report.words.quantities import clean, count, duration
from mcpace.report.words.tool_time import TimeRow, dependency_words, line_words

FEWEST_ROUNDS = 3
"""Rounds below which an interval is too wide to be shown."""
BARS = "A bar shows the time of its row beside that of the longest row, and no percentage."
LEAST_SHARE = 0.01
"""Rows below this share of the longest sum are left out."""


def added_words(added: AddedTime) -> str:
    """The time that looking inside adds to a call, with its interval."""
    if added.slow_start_s is None:
        return _ratio_words(added)
    return (
        f"{_ratio_words(added)} The program takes {duration(added.slow_start_s)} to start with it, so there were fewer "
        "rounds than usual; --trials sets their number."
    )


def _ratio_words(added: AddedTime) -> str:
    plain = f"A call takes {duration(added.plain_s)} without looking inside"
    percent = round(abs(added.ratio - 1) * 100)
    change = f"{percent} % {'less' if added.ratio < 1 else 'more'} with it" if percent else "as long with it"
    if added.low is None or added.high is None or added.rounds < FEWEST_ROUNDS:
        return f"{plain}, and {change}, by too few rounds for an interval."
    interval = f"95 % interval {_signed_percent(added.low)} to {_signed_percent(added.high)}"
    if added.low <= 1 <= added.high:
        return f"{plain}, and {change}. These rounds do not show whether looking inside caused that: {interval}."
    return f"{plain}, and {change}: {interval}."


def _signed_percent(ratio: float) -> str:
    return f"{'−' if ratio < 1 else '+'}{abs(ratio - 1) * 100:.0f} %"


def title(case: Case, *, is_comparison: bool) -> str:
    """``Inside forecast under load``; in a comparison of servers, the server's name in place of the tool's."""
    subject = case.subject.label() if is_comparison else case.tool or "the server"
    return f"Inside {clean(subject, 40)} under load"


def basis(sums: InsideSums) -> str:
    """``mean of 1,250 calls``."""
    return f"mean of {count(sums.calls, 'call')}"


def overlap_words(sums: InsideSums) -> str:
    """The meaning of sums over calls that overlap, and the questions that they leave open."""
    return (
        f"Calls overlap, so these are sums over {duration(sums.stretch_s)} of load, divided by the number of calls: "
        f"{duration(sums.running_s)} of running threads, and the answer times of requests. Which call they belong to, "
        "and how long a call waited for another, cannot be told. Percentages are shares of the running threads' time."
    )


def package_rows(sums: InsideSums, most: int) -> list[TimeRow]:
    """Packages for which threads ran, the longest first."""
    least_s = sums.running_s * LEAST_SHARE
    named = [row for row in sums.packages if row.time_s >= least_s and row.time_s > 0][:most]
    return [
        TimeRow(
            "own" if row.package is None else "library",
            row.time_s,
            f"ran in {clean(row.package or 'the code of the server', 60)}",
        )
        for row in named
    ]


def dependency_rows(sums: InsideSums, most: int) -> list[TimeRow]:
    """Dependencies by their answer times, the longest first."""
    return [
        TimeRow("dependency", row.time_s, f"{dependency_words(row)}, {duration(row.time_s / row.requests)} each")
        for row in sums.dependencies[:most]
        if row.requests
    ]


def line_rows(sums: InsideSums, most: int) -> list[TimeRow]:
    """Lines of the server's own code, the longest first."""
    own = [(line, line.running_s + line.waiting_s) for line in sums.lines]
    least_s = max((time_s for _, time_s in own), default=0.0) * LEAST_SHARE
    return [TimeRow("own", time_s, line_words(line)) for line, time_s in own[:most] if time_s >= least_s]
