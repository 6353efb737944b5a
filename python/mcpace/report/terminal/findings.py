"""Prints findings, each cause once: explanation, places, cost, advice."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.groups import Group, OperationGroup, group_findings
from mcpace.report.model.run import Run
from mcpace.report.terminal.lines import blank, heading, wrap_paragraph
from mcpace.report.words import findings
from mcpace.report.words.comparison import second_side_suffix
from mcpace.report.words.labels import confidence_words
from mcpace.report.words.quantities import clean, duration, join_words

STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold"}
INDENT = 2
MARGIN = 8
"""Width of the labels before paragraphs: ``where``, ``do``, ``check``, ``or``."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """All findings; no lines where there are none, because the verdict says so already."""
    groups = group_findings(run.cases)
    if not groups:
        return
    yield blank()
    yield heading(f"What was found{second_side_suffix(run)}", width)
    for group in groups:
        yield blank()
        yield from _group_lines(group, width)


def _group_lines(group: Group, width: int) -> Iterator[Text]:
    finding = group.example
    yield from wrap_paragraph(findings.title_for(group.code), width, style=STYLES[group.severity])
    sure = confidence_words(finding.confidence, finding.confidence_reason)
    yield from wrap_paragraph(f"{clean(group.code, 60)} · {group.severity} · {sure}", width, indent=INDENT, style="dim")
    yield from wrap_paragraph(findings.explanation_for(finding), width, indent=INDENT)
    for place in group.places:
        yield from _labelled_paragraph("where", place_words(place), width)
    yield from _labelled_paragraph("cost", _cost_words(group), width)
    advice = finding.advice or findings.advice_for(group.code, finding.context)
    if advice:
        yield from _labelled_paragraph("do", clean(advice), width)
    disproof = findings.disproof_for(finding.disproof)
    if disproof:
        yield from _labelled_paragraph("check", disproof, width)
    for other in finding.alternatives:
        yield from _labelled_paragraph("or", findings.alternative_for(other), width)


def place_words(place: OperationGroup) -> str:
    """``profile:notion, connect, list and call: python@1.12.1, python@1.13.0``."""
    return (
        f"{clean(place.target, 60)}, {join_words([clean(o, 30) for o in place.operations])}: "
        f"{', '.join(clean(subject, 40) for subject in place.subjects)}"
    )


def _cost_words(group: Group) -> str:
    low, high = group.cost_range_s
    text = findings.cost_of(group.example)
    if high > 1.5 * low and low >= 0:
        text += f"; from {duration(low)} to {duration(high)} where it was seen"
    return text


def _labelled_paragraph(name: str, text: str, width: int) -> Iterator[Text]:
    paragraph = wrap_paragraph(text, width, indent=INDENT + MARGIN)
    for number, line in enumerate(paragraph):
        if number:
            yield line
        else:
            yield Text.assemble(" " * INDENT, (name.ljust(MARGIN), "dim"), line[INDENT + MARGIN :])
