"""The verdict on a saved recording: the causes that it proves, gravest first."""

from __future__ import annotations

from mcpace.report import words
from mcpace.report.groups import Group, grouped
from mcpace.report.quantities import count, duration
from mcpace.report.run import Run

TOLD = 3
"""Causes that the verdict names; all stand below it."""


def sentences(run: Run) -> list[str]:
    """What the recording proves, and what it lacks."""
    groups = grouped(run.cases)
    told = [_sentence(group) for group in groups[:TOLD]]
    if len(groups) > TOLD:
        told.append(f"{count(len(groups) - TOLD, 'cause')} more below.")
    if not told:
        seen = f" in {count(run.recording.events, 'event')}" if run.recording else ""
        told = [f"No cause of lost time was found{seen}."]
    return [*told, *_lacks(run)]


def _sentence(group: Group) -> str:
    finding = group.example
    clause = words.clause_for(group.code)
    cost = finding.cost_s or finding.total_s
    each = " a call" if finding.calls else " in all"
    text = f"{clause[:1].upper()}{clause[1:]}"
    return f"{text}, which costs {duration(cost)}{each}." if cost > 0 else f"{text}."


def _lacks(run: Run) -> list[str]:
    lacks = []
    if run.recording and run.recording.cut_off:
        lacks.append("The recording was cut off: what came after is not known.")
    if run.recording and run.recording.lost:
        lacks.append(f"{count(run.recording.lost, 'event')} could not be recorded, and may explain more.")
    return lacks
