"""The sentences of a comparison and of a gate.

Design constraint: a sentence states only facts that the Run holds. Where no difference was found, the sentence states
how large a difference would have been detected.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.report.model.comparison import Attempt, Compared, Comparison, SideFacts
from mcpace.report.model.run import Run
from mcpace.report.words import drift, findings
from mcpace.report.words.quantities import (
    NO_BREAK,
    clean,
    count,
    duration,
    figure,
    join_words,
    ratio_figure,
    size,
    times,
)

LONGEST_NAME = 60
BLIND = 1.5
"""A gate mentions its smallest detectable change where that is at least this many times its tolerance."""

METRICS: dict[str, str] = {
    "time": "time",
    "throughput": "throughput",
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "errors": "errors",
    "stall": "longest standstill",
    "cpu": "processor time a call",
    "memory": "memory",
}

WARNINGS: dict[str, str] = {
    "other-machine": "The two runs are from different machines: times of one say little of the other's.",
    "other-system": "The two runs are from different kernels.",
    "other-kind": "The two runs measured by different commands.",
    "other-options": "The two runs were made with different options.",
    "other-mcpace": "The two runs were made by different releases of mcpace.",
    "partial": "One of the runs was interrupted.",
    "not-interleaved": "The two were measured one after the other: what the machine did between them is in the ratios.",
    "instrument": "In one of the two the instrument or the machine was in trouble: see its findings of measurement.",
    "measured-once": "Saved runs can't be measured again before a red verdict; a gate with a target measures twice.",
}
"""Circumstances that weaken a comparison, by their codes."""

REASONS: dict[str, str] = {
    "slower": "is slower than the tolerance allows",
    "broken": "fails where the first side worked",
    "new-finding": "shows a cause of lost time that the first side does not",
    "drift": "lists its tools in a way that this gate refuses",
}


def sentences(run: Run) -> list[str]:
    """The verdict: the figures that got worse, those that got better, and the smallest detectable change."""
    made = run.comparison
    if made is None or not made.attempts:
        return ["Nothing could be compared."]
    last = made.attempts[-1]
    told = _gate_sentences(made, partial=run.partial) if run.kind == "gate" else []
    # A change that breaks callers weighs more than any time.
    is_breaking = any(one.refused("breaking") for one in made.drifts)
    told += drift.sentences(made.drifts) if is_breaking else []
    told += _failure_sentences(last)
    worse = [row for row in last.rows if row.verdict == "worse"]
    better = [row for row in last.rows if row.verdict == "better"]
    if worse:
        told.append(f"Worse{_change_list(worse)}.")
    if better:
        told.append(f"Better{_change_list(better)}.")
    if not worse and not better and last.rows:
        told.append(f"No difference was seen{_detectable_change(last.rows)}")
    if not last.rows and not last.broken:
        told.append("The two have no figure in common.")
    if run.kind == "gate" and made.judged and not made.red and not made.inconclusive and not run.partial:
        told += _insensitivity(made, said=not worse and not better)
    told += _finding_sentences(last)
    return told if is_breaking else told + drift.sentences(made.drifts)


def warnings(made: Comparison) -> list[str]:
    """The circumstances that weaken the comparison, for the reader of its ratios."""
    return [WARNINGS[code] for code in made.warnings if code in WARNINGS]


def left_out(made: Comparison) -> list[str]:
    """Describes the rows that only one side has."""
    told = []
    for cases, side in ((made.only_base, "first"), (made.only_now, "second")):
        if cases:
            names = join_words([place(one.subject, one.target, one.operation, one.tool) for one in cases[:5]])
            more = f" and {len(cases) - 5} more" if len(cases) > 5 else ""
            told.append(f"Only on the {side} side: {names}{more}.")
    return told


def sides(run: Run) -> list[tuple[str, str, SideFacts]]:
    """``first`` and ``second`` with the description and the facts of each side; empty where this run measured both."""
    made = run.comparison
    told = []
    for side, option, facts in (("first", "base", made and made.base), ("second", "run", made and made.now)):
        if facts:
            name = clean(run.options.get(option) or "", 120)
            what = f"{clean(facts.kind, 20)}, {clean(facts.started, 40)}, mcpace {clean(facts.mcpace, 40)}"
            told.append((side, f"{name}: {what}" if name else what, facts))
    return told


def machine_words(facts: SideFacts) -> str:
    """The machine of a side, in one line."""
    memory = size(facts.memory_bytes) if facts.memory_bytes is not None else ""
    parts = [clean(facts.cpu, 120), count(facts.cores, "core"), memory, clean(facts.architecture, 40)]
    return ", ".join(part for part in parts if part)


def system_words(facts: SideFacts) -> str:
    """The kernel and the Python version of a side."""
    python = f", Python {clean(facts.python, 40)}" if facts.python else ""
    return f"{clean(facts.system, 120)}{python}"


def second_side_suffix(run: Run) -> str:
    """Suffix for the title of a section that covers only the second side of a comparison."""
    return " on the second side" if run.comparison else ""


def operation_words(row: Compared) -> str:
    """``call greet``."""
    return clean(f"{row.operation} {row.tool}" if row.tool else row.operation, LONGEST_NAME)


def side_names(row: Compared) -> str:
    """``python@2.3.0 against python@1.30.0``; a single name where the sides share it."""
    names = (clean(row.subject, LONGEST_NAME), clean(row.base_subject, LONGEST_NAME))
    return " against ".join(dict.fromkeys(names))


def turn_targets(run: Run) -> tuple[str, str] | None:
    """The two targets that were measured in turns."""
    made = run.comparison
    base, target = run.options.get("base"), run.options.get("target")
    if made is None or made.base is not None or base is None or target is None:
        return None
    return clean(base, 120), clean(target, 120)


def place(subject: str, target: str, operation: str, tool: str | None) -> str:
    """``python@2.3.0 · profile:notion · call greet``."""
    what = f"{operation} {tool}" if tool else operation
    return " · ".join(clean(part, LONGEST_NAME) for part in (subject, target, what))


def value(row: Compared, amount: float) -> str:
    """A figure in its unit."""
    match row.unit:
        case "s":
            return duration(amount)
        case "rps":
            return f"{figure(amount)}/s"
        case "share":
            return f"{figure(100 * amount)}{NO_BREAK}%"
        case "bytes":
            return size(amount)


def ratio_words(row: Compared) -> str:
    """``1.12×``, with the interval where there is one."""
    if row.ratio is None:
        return ""
    if row.low is None or row.high is None:
        return times(row.ratio)
    return f"{times(row.ratio)} ({ratio_figure(row.low)}–{ratio_figure(row.high)})"


def verdict_words(row: Compared) -> str:
    """``worse``, ``worse (allowed)`` within the tolerance, ``better``, ``same``, ``not seen``, ``too few``."""
    match row.verdict:
        case "worse":
            return "worse" if row.breach else "worse (allowed)"
        case "better" | "same":
            return row.verdict
        case _:
            return "not seen" if row.low is not None or row.method == "wilson" else "too few"


def sees_words(row: Compared) -> str:
    """``1.04×``, the smallest change that would have been detected."""
    return "" if row.sees is None else times(row.sees)


def _gate_sentences(made: Comparison, *, partial: bool) -> list[str]:
    tolerance = f"{100 * made.tolerance:.3g}{NO_BREAK}%"
    if made.unconfirmed and not made.red:
        why = clean(made.unconfirmed, 300).rstrip(".")
        return [f"Not judged: the first measurement looked worse, and the second could not be made: {why}."]
    if not made.judged:
        return ["Nothing could be judged: no figure has enough trials on both sides for an interval."]
    if partial:
        # The command exits with its code for an interruption, independently of the figures.
        seen = "the first measurement looks worse" if made.red else f"nothing was seen to be worse by {tolerance}"
        return [f"Not judged: it was interrupted. So far {seen}."]
    if made.inconclusive:
        return [*_doubt_sentences(made, tolerance), "More --trials, or a quieter machine, can decide it."]
    if not made.red:
        again = " after a second measurement: the first had looked worse" if len(made.attempts) > 1 else ""
        return [f"Passed{again}: nothing was seen to be worse by more than {tolerance}."]
    why = join_words([REASONS.get(reason, clean(reason, 60)) for reason in made.reasons])
    twice = ", measured twice" if len(made.attempts) > 1 else ""
    return [f"Failed{twice}: the second side {why}."]


def _doubt_sentences(made: Comparison, tolerance: str) -> list[str]:
    limit = 1 + made.tolerance
    doubtful = [row for row in made.attempts[-1].rows if not row.breach and _slowdown_factor(row) > limit]
    named = [f"{METRICS[row.metric]} of {operation_words(row)}, {ratio_words(row)}" for row in doubtful[:3]]
    what = f"{join_words(named) if named else 'a figure'}, {'looks' if len(named) < 2 else 'look'}"
    return [f"Inconclusive: {what} worse than the tolerance of {tolerance} allows, but the interval is too wide."]


def _slowdown_factor(row: Compared) -> float:
    """The factor by which the second side is worse; 0 where it is unknown."""
    if not row.ratio:
        return 0.0
    return 1 / row.ratio if row.metric == "throughput" else row.ratio


def _insensitivity(made: Comparison, *, said: bool) -> list[str]:
    """A remark on the smallest detectable change, where it is far larger than the gate's tolerance."""
    seen = [row.sees for row in made.attempts[-1].rows if row.sees is not None]
    if "measured-once" in made.warnings or not seen or max(seen) <= BLIND * (1 + made.tolerance):
        return []
    if said:
        return ["More --trials, or a quieter machine, show smaller ones."]
    return [
        f"Some figures show only changes of {times(max(seen))} and more: more --trials, or a quieter machine, show "
        "smaller ones."
    ]


def _failure_sentences(last: Attempt) -> list[str]:
    told = []
    for one in last.broken[:3]:
        why = clean(one.error or "it was not measured on the second side", 200).rstrip(".")
        told.append(f"{place(one.subject, one.target, one.operation, one.tool)} fails now: {why}.")
    return told


def _change_list(rows: Sequence[Compared]) -> str:
    def weight(row: Compared) -> float:
        return max(row.ratio or 1.0, 1 / (row.ratio or 1.0))

    chosen = sorted(rows, key=weight, reverse=True)[:3]
    # A subject and target that all rows share are written once.
    shared = len({(row.subject, row.target) for row in chosen}) == 1
    where = f" at {clean(chosen[0].target, LONGEST_NAME)}, {side_names(chosen[0])}" if shared else ""
    told = []
    for row in chosen:
        what = operation_words(row) if shared else place(row.subject, row.target, row.operation, row.tool)
        change = ratio_words(row) if row.ratio else f"{value(row, row.base)} to {value(row, row.now)}"
        told.append(f"{METRICS[row.metric]} of {what}, {change}")
    more = [f"{count(len(rows) - 3, 'more figure')}"] if len(rows) > 3 else []
    return f"{where}: {'; '.join([*told, *more])}"


def _detectable_change(rows: Sequence[Compared]) -> str:
    seen = [row.sees for row in rows if row.sees is not None]
    if not seen:
        return ", and there were too few measurements to see one."
    best, worst = times(min(seen)), times(max(seen))
    return f". Smallest detectable change: {best if best == worst else f'{best} to {worst}, by figure'}."


def _finding_sentences(last: Attempt) -> list[str]:
    told = []
    for found, word in ((last.new_findings, "New"), (last.gone_findings, "Gone")):
        codes = list(dict.fromkeys(one.code for one in found))
        if codes:
            told.append(f"{word}: {'; '.join(findings.clause_for(code) for code in codes)}.")
    return told
