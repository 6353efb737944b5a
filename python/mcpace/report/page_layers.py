"""One server's layers on the page: a table, a stacked bar of what each adds, what each includes."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from mcpace.report import svg
from mcpace.report.quantities import clean, duration
from mcpace.report.run import Case, Run
from mcpace.report.words_layers import (
    MEANINGS,
    conditions,
    inside,
    layer_name,
    measured_cases,
    over_words,
    ratio_words,
    remark,
    share_words,
)

COLUMNS = ("median", "quartiles", "over direct", "ratio", "adds", "share")
HEIGHT = 34
LABELLED_FROM = 9.0
"""Percent of the picture that a layer needs to have its name written on it."""
CLASSES = {"direct": "service", "handler": "dispatch", "in-process": "transport", "socket": "rest"}


@dataclass(frozen=True)
class Row:
    """One layer."""

    name: str
    meaning: str
    figures: list[str]
    remark: str


@dataclass(frozen=True)
class Layered:
    """A server's layers."""

    title: str
    columns: tuple[str, ...]
    rows: list[Row]
    picture: Markup | None
    sentences: list[str]


def layered(run: Run) -> Layered | None:
    """``None`` for other runs."""
    if run.kind != "layers" or not run.cases:
        return None
    first = run.cases[0]
    title = f"{clean(first.tool or '', 60)} at {clean(first.target, 120)}, {clean(first.subject.label(), 60)}"
    return Layered(title, COLUMNS, [_row(case) for case in run.cases], _bar(run), list(conditions(run)))


def _row(case: Case) -> Row:
    layer, name = case.layer, layer_name(case)
    figures = [""] * len(COLUMNS)
    if layer is not None and case.median_s is not None:
        spread = "" if layer.low_s is None or layer.high_s is None else _between(layer.low_s, layer.high_s)
        adds = "" if layer.adds_s is None else f"{'−' if layer.adds_s < 0 else ''}{duration(abs(layer.adds_s))}"
        figures = [duration(case.median_s), spread, over_words(case), ratio_words(case), adds, share_words(case)]
    return Row(name, MEANINGS.get(name, ""), figures, remark(case))


def _between(low_s: float, high_s: float) -> str:
    return f"{duration(low_s)} – {duration(high_s)}"


def _bar(run: Run) -> Markup | None:
    """What the outermost layer is made of."""
    adding = [case for case in inside(measured_cases(run)) if case.layer and (case.layer.adds_s or 0.0) > 0]
    whole = sum(case.layer.adds_s or 0.0 for case in adding if case.layer)
    if whole <= 0:
        return None
    parts, at, told = [], 0.0, []
    for case in adding:
        assert case.layer is not None, "chosen by it"
        adds, name = case.layer.adds_s or 0.0, layer_name(case)
        width = 100 * adds / whole
        words = f"{name}: {duration(adds)}"
        parts.append(svg.rect(at, width, 2, HEIGHT - 4, f"part layer-{CLASSES.get(name, 'rest')}", words))
        if width >= LABELLED_FROM:
            parts.append(svg.text(at + 0.8, HEIGHT / 2 + 4, name, f"inside on-layer-{CLASSES.get(name, 'rest')}"))
        told.append(words)
        at += width
    return svg.picture(HEIGHT, "; ".join(told), parts, kind="layers")
