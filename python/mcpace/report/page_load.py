"""A load on the page: a table of operations, the course second by second, thresholds, the generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mcpace.report import svg
from mcpace.report.quantities import clean, count, duration, share
from mcpace.report.run import Case, Run
from mcpace.report.run_load import Latencies, LoadOperation, LoadSecond
from mcpace.report.words_load import (
    course,
    errors_of,
    figure_of,
    lateness_words,
    length_words,
    limit_words,
    model_words,
    threshold_words,
)

HEIGHT = 64
MOST_BARS = 240


@dataclass(frozen=True)
class Row:
    """An operation in the table."""

    name: str
    apart: bool
    figures: list[str]
    errors: str
    first_error: str


@dataclass(frozen=True)
class Course:
    """One figure over time."""

    title: str
    picture: Markup
    most: str


@dataclass(frozen=True)
class Held:
    """A threshold."""

    text: str
    met: bool
    words: str


@dataclass(frozen=True)
class LoadShown:
    """One case of load."""

    target: str
    model: str
    rows: list[Row]
    courses: list[Course]
    every: str
    thresholds: list[Held]
    facts: list[tuple[str, str]]


COLUMNS = ("calls/s", "good", "failed", "mean", "p50", "p90", "p99", "p99.9", "max", "p99, sent")


def loads(run: Run) -> list[LoadShown]:
    """Every case of load; none for other runs."""
    return [_shown(case) for case in run.cases if case.load is not None] if run.kind == "load" else []


def _shown(case: Case) -> LoadShown:
    load = case.load
    assert load is not None, "a case of load"
    rows = [_row(one, apart=False) for one in (case.by_tool or {}).values()]
    rows += [_row(one, apart=True) for one in load.others.values()]
    groups = _groups(course(case))
    step = len(groups[0]) if groups else 1
    return LoadShown(
        target=clean(case.target, 120),
        model=f"{model_words(load.model)}, {length_words(case)}",
        rows=rows,
        courses=_courses(groups) if len(groups) > 1 else [],
        every="each second" if step == 1 else f"every {step} seconds",
        thresholds=[Held(clean(one.text, 60), one.met, threshold_words(one)) for one in load.thresholds],
        facts=_facts(case),
    )


def _row(one: LoadOperation, *, apart: bool) -> Row:
    told = [figure_of(round(one.throughput_rps, 1)), f"{one.ok:,}", f"{one.count - one.ok:,}"]
    return Row(
        name=clean(one.name, 60),
        apart=apart,
        figures=[*told, *_latencies(one.latency_s), duration(one.service_s.p99) if one.service_s else ""],
        errors=errors_of(one),
        first_error=clean(one.first_error or "", 300),
    )


def _latencies(told: Latencies | None) -> list[str]:
    if told is None:
        return [""] * 6
    return [duration(value) for value in (told.mean, told.p50, told.p90, told.p99, told.p999, told.max)]


def _groups(seconds: Sequence[LoadSecond]) -> list[Sequence[LoadSecond]]:
    step = -(-len(seconds) // MOST_BARS) or 1
    return [seconds[start : start + step] for start in range(0, len(seconds), step)]


def _courses(groups: list[Sequence[LoadSecond]]) -> list[Course]:
    rates = [sum(second.ok for second in group) / len(group) for group in groups]
    medians = [max((second.p50_s or 0.0 for second in group), default=0.0) for group in groups]
    slow = [max((second.p99_s or 0.0 for second in group), default=0.0) for group in groups]
    wrong = [float(sum(second.errors for second in group)) for group in groups]
    users = [float(max(second.users for second in group)) for group in groups]
    courses = [
        _course("calls a second", rates, groups, [figure_of(round(rate)) for rate in rates], "bar"),
        _course("p50", medians, groups, [duration(value) for value in medians], "bar"),
        _course("p99", slow, groups, [duration(value) for value in slow], "bar"),
    ]
    if len(set(users)) > 1:
        courses.append(_course("users", users, groups, [figure_of(value) for value in users], "bar"))
    if any(wrong):
        courses.append(_course("errors", wrong, groups, [figure_of(value) for value in wrong], "bar wrong"))
    return courses


def _course(title: str, values: list[float], groups: list[Sequence[LoadSecond]], words: list[str], kind: str) -> Course:
    most = max(values) or 1.0
    width = 100 / len(values)
    parts = []
    for number, (value, group, said) in enumerate(zip(values, groups, words, strict=True)):
        height = round(value / most * HEIGHT, 1)
        faint = f"{kind} faint" if group[-1].warm_up else kind
        tip = f"second {group[0].at_s:.0f}: {said}{', warm-up' if group[-1].warm_up else ''}"
        parts.append(svg.rect(number * width, width * 0.86, HEIGHT - height, height, faint, tip))
    best = words[values.index(max(values))]
    label = f"{title} over {count(len(values), 'bar')}, at most {best}"
    return Course(title, svg.picture(HEIGHT, label, parts, kind="course"), f"at most {best}")


def _facts(case: Case) -> list[tuple[str, str]]:
    load = case.load
    assert load is not None, "a case of load"
    found, engine = load.connections, load.engine
    facts = [
        (
            "Calls",
            f"{load.intended:,} due, {load.begun:,} begun, {load.dropped:,} never begun, {load.late:,} late for "
            f"want of a free slot, {load.unfinished:,} without an end",
        ),
        (
            "Connections",
            f"{found.opened:,} opened, {found.reused_requests:,} requests on kept ones, {found.failed:,} "
            f"failed, {found.closed_by_peer:,} closed by the target",
        ),
        (
            "Generator",
            f"{count(engine.threads, 'thread')}, {share(engine.busy, 1)} busy, {duration(engine.cpu_s)} of "
            f"processor time; {lateness_words(engine.late_p99_s)}",
        ),
    ]
    if limit := limit_words(case):
        facts.append(("Limit", limit))
    return facts
