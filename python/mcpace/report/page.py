"""A run as the page's template wants it: words, figures and pictures, ready to be put down.

Design constraint: decisions are made here and in the modules below, the template only arranges. All text is plain: the
template's autoescape makes it safe, and what is :class:`markupsafe.Markup` was escaped when it was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from mcpace.report import svg, svg_ledger, svg_trials, svg_waterfall, words
from mcpace.report.calls import Pair, pairs
from mcpace.report.comparison import Standing, change_words, standing, state_words
from mcpace.report.groups import Group, cases_at, grouped, in_order, operations, subjects, targets
from mcpace.report.labels import confidence_words, role_words, split_words
from mcpace.report.quantities import clean, duration, times
from mcpace.report.run import Bisection, Case, Run
from mcpace.report.scale import Scale

SHOWN_EVIDENCE = 8


@dataclass(frozen=True)
class Cell:
    """A case in the summary table."""

    figure: str
    note: str
    kind: str
    title: str


@dataclass(frozen=True)
class Line:
    """A case in a chart."""

    label: str
    picture: Markup | None
    figure: str
    note: str
    kind: str
    other: Markup | None = None
    """The same bar as shares of itself (ledger)."""


@dataclass(frozen=True)
class Chart:
    """One operation's cases on one axis."""

    operation: str
    lines: list[Line]
    axis: Markup | None = None
    remark: str = ""


@dataclass(frozen=True)
class Told:
    """A cause."""

    title: str
    code: str
    severity: str
    confidence: str
    explanation: str
    places: list[tuple[str, str, str]]
    """Target, operations, subjects."""
    cost: str
    evidence: list[tuple[str, str, int]]
    """When, what, which event."""
    evidence_of: str
    advice: str
    disproof: str


@dataclass(frozen=True)
class Shown:
    """A waterfall."""

    heading: str
    total: str
    kind: str
    drawing: svg_waterfall.Drawing
    same_scale: Markup | None = None


@dataclass(frozen=True)
class Panel:
    """A choice among the waterfalls."""

    key: str
    name: str
    calls: list[Shown]


@dataclass(frozen=True)
class Probed:
    """A release that a bisection ran."""

    version: str
    verdict: str
    figures: list[str]
    note: str


@dataclass(frozen=True)
class Overview:
    """The summary table: a column for each subject, or for each figure where there is one subject only."""

    columns: list[str]
    targets: list[tuple[str, list[tuple[str, list[Cell]]]]]
    """For each target its operations with their cells."""
    compares: bool


def overview(run: Run) -> Overview:
    """Every case of the run, once."""
    labels = subjects(run)
    compares = len(labels) > 1
    table = []
    for target in targets(run):
        rows = []
        for operation in operations(run, target):
            cases = {case.subject.label(): case for case in cases_at(run, target, operation)}
            found = [cases.get(label) for label in labels]
            rows.append((operation, [_cell(case) for case in found] if compares else _figures(found[0])))
        table.append((clean(target, 120), rows))
    return Overview([clean(label, 60) for label in labels] if compares else list(FIGURES), table, compares)


FIGURES = ("cold", "median", "mean", "fastest", "slowest")


def _figures(case: Case | None) -> list[Cell]:
    cell = _cell(case)
    if case is None or case.summary is None:
        return [cell] + [Cell("", "", "missing", "")] * (len(FIGURES) - 1)
    summary = case.summary
    others = (summary.mean_s, summary.min_s, summary.max_s)
    cold = Cell(duration(summary.first_s), "", "unknown", "")
    return [cold, cell] + [Cell(duration(seconds), "", "unknown", "") for seconds in others]


def _cell(case: Case | None) -> Cell:
    if case is None:
        return Cell("", "", "missing", "not part of this run")
    state, reason = state_words(case), clean(case.unsupported or case.error or "")
    if not case.trials_s or case.summary is None:
        return Cell("", state, "unsupported" if case.unsupported else "failed", reason)
    now = standing(case.change)
    note = ""
    if case.change and now is Standing.MUCH_SLOWER:
        note = f"{times(case.change.ratio)} slower"
    elif case.change and now is Standing.MUCH_FASTER:
        note = f"{times(1 / case.change.ratio)} faster"
    notes = " · ".join(part for part in (note, state) if part)
    title = ". ".join(part for part in (svg_trials.strip_words(case), change_words(case.change), reason) if part)
    return Cell(duration(case.summary.median_s), notes, now.value, title)


def trials(run: Run) -> list[tuple[str, list[Chart]]]:
    """For each target a chart an operation."""
    return [(clean(t, 120), [_trials(cases_at(run, t, o), o) for o in operations(run, t)]) for t in targets(run)]


def _trials(cases: list[Case], operation: str) -> Chart:
    scale = Scale.covering(trial for case in cases for trial in case.trials_s)
    first = cases[0].summary.median_s if len(cases) > 1 and cases[0].summary else None
    chart_lines = []
    for case in cases:
        now = standing(case.change)
        picture = svg_trials.strip(case, scale, first, kind=now.value) if case.trials_s else None
        figure = duration(case.summary.median_s) if case.summary else ""
        reason = clean(case.unsupported or case.error or "")
        state = ": ".join(part for part in (state_words(case), reason) if part)
        note = "; ".join(part for part in (change_words(case.change), state) if part)
        chart_lines.append(Line(clean(case.subject.label(), 60), picture, figure, note, now.value))
    tool = next((case.tool for case in cases if case.tool), None)
    title = f"{operation} {clean(tool, 60)}" if tool else operation
    timed = any(case.trials_s for case in cases)
    return Chart(
        title,
        chart_lines,
        svg.axis(scale.ticks()) if timed else None,
        ", ".join(_remarks(cases, scale)) if timed else "",
    )


def _remarks(cases: list[Case], scale: Scale) -> Iterator[str]:
    if scale.logarithmic:
        yield "logarithmic scale"
    step = max(svg_trials.stride(case) for case in cases)
    if step > 1:
        yield f"one dot for every {step} trials"


def ledgers(run: Run) -> list[tuple[str, list[Chart]]]:
    """For each target a chart an operation that has ledgers."""
    charts = [
        (clean(t, 120), [c for o in operations(run, t) if (c := _ledgers(cases_at(run, t, o), o))])
        for t in targets(run)
    ]
    return [(target, drawn) for target, drawn in charts if drawn]


def _ledgers(cases: list[Case], operation: str) -> Chart | None:
    longest = max((case.ledger_s.total() for case in cases if case.ledger_s), default=0.0)
    chart_lines = []
    for case in cases:
        if case.ledger_s is not None:
            total = case.ledger_s.total()
            by_time = svg_ledger.bar(case.ledger_s, longest)
            by_share = svg_ledger.bar(case.ledger_s, total)
            label = clean(case.subject.label(), 60)
            note = split_words(case.ledger_s.server_split) if case.ledger_s.server_split else ""
            chart_lines.append(Line(label, by_time, duration(total), note, "unknown", other=by_share))
    return Chart(operation, chart_lines) if chart_lines else None


def findings(run: Run) -> list[Told]:
    """Every cause once."""
    return [_told(group) for group in grouped(run.cases)]


def _told(group: Group) -> Told:
    finding = group.example
    case = next(sighting.case for sighting in group.sightings if sighting.finding is finding)
    return Told(
        title=words.title_for(group.code),
        code=clean(group.code, 60),
        severity=group.severity,
        confidence=confidence_words(finding.confidence, finding.confidence_reason),
        explanation=words.explanation_for(finding),
        places=[
            (
                clean(place.target, 120),
                ", ".join(place.operations),
                ", ".join(clean(subject, 60) for subject in place.subjects),
            )
            for place in group.places
        ],
        cost=words.cost_of(finding),
        evidence=[
            (duration(item.at_s), role_words(item.role), item.event) for item in finding.evidence[:SHOWN_EVIDENCE]
        ],
        evidence_of=f"{clean(case.subject.label(), 60)}, {case.operation} at {clean(case.target, 120)}",
        advice=clean(finding.advice) or words.advice_for(group.code, finding.context),
        disproof=words.disproof_for(finding.disproof),
    )


def panels(run: Run) -> list[Panel]:
    """The waterfalls to choose from."""
    return [_panel(number, pair) for number, pair in enumerate(pairs(run))]


def _panel(number: int, pair: Pair) -> Panel:
    case = pair.case
    name = f"{case.operation} at {clean(case.target, 60)}: {clean(case.subject.label(), 40)}"
    if pair.better:
        name += f" beside {clean(pair.better.subject.label(), 40)}"
    return Panel(f"call-{number}", name, list(_shown(pair)))


def _shown(pair: Pair) -> Iterator[Shown]:
    slow = pair.case.waterfall
    assert slow is not None  # pairs() takes only cases that have one
    yield _call(pair.case, "slow" if pair.better else "plain", None)
    if pair.better and pair.better.waterfall:
        ruler = svg_waterfall.same_scale(pair.better.waterfall.total_ms, slow.total_ms)
        yield _call(pair.better, "good", ruler)


def _call(case: Case, kind: str, ruler: Markup | None) -> Shown:
    waterfall = case.waterfall
    assert waterfall is not None
    heading = f"{clean(case.subject.label(), 60)}, {case.operation}, trial {waterfall.trial + 1}"
    return Shown(heading, duration(waterfall.total_ms / 1000), kind, svg_waterfall.draw(waterfall), ruler)


def probes(search: Bisection) -> tuple[list[str], list[Probed]]:
    """Operations, and the releases that were tried."""
    names = in_order(name for probe in search.probes for name in probe.medians_s)
    tried = []
    for probe in search.probes:
        figures = [duration(probe.medians_s[name]) if name in probe.medians_s else "" for name in names]
        causes = ", ".join(clean(code, 60) for code in probe.findings)
        note = clean(probe.reason) if probe.verdict == "untestable" else causes
        tried.append(Probed(clean(probe.version, 40), probe.verdict, figures, note))
    return [clean(name, 30) for name in names], tried
