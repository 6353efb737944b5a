"""The verdict on a saved recording: the causes that it proves, the most severe first."""

from __future__ import annotations

import statistics

from mcpace.report.groups import Group, group_findings
from mcpace.report.model.run import Run
from mcpace.report.words import findings
from mcpace.report.words.quantities import clean, count, duration

TOLD = 3
"""Maximum number of causes that the verdict names. The report below it lists all."""


def sentences(run: Run) -> list[str]:
    """The causes that the recording proves, its requests, and its gaps."""
    groups = group_findings(run.cases)
    asked = _request_sentences(run)
    told = [cause_sentence(group) for group in groups[:TOLD]]
    if len(groups) > TOLD:
        told.append(f"{count(len(groups) - TOLD, 'cause')} more below.")
    if not told:
        seen = f" in {count(run.recording.events, 'event')}" if run.recording else ""
        told = [f"No cause of lost time was found{seen}."]
    # Findings come first; without findings, the summary of methods.
    return [*told, *asked, *_gap_sentences(run)] if groups else [*asked, *told, *_gap_sentences(run)]


def _request_sentences(run: Run) -> list[str]:
    """The requests of a foreign client, and the slowest one. Empty where the recording has marked operations, which the
    trials cover."""
    facts = run.recording
    if facts is None or any(case.trials_s for case in run.cases):
        return []
    told = []
    if facts.starts_s:
        each = f" ({count(len(facts.starts_s), 'start')}, the median)" if len(facts.starts_s) > 1 else ""
        told.append(f"The server takes {duration(statistics.median(facts.starts_s))} to start{each}.")
    # The handshake with a new process is part of its start, which the sentence above covers.
    skipped = {"initialize", "server/discover"} if facts.starts_s else set()
    timed = [one for one in facts.methods if one.slowest_s is not None and one.method not in skipped]
    if timed:
        slowest = max(timed, key=lambda one: one.slowest_s or 0.0)
        name = clean(f"{slowest.method} {slowest.name}" if slowest.name else slowest.method, 60)
        requests = count(sum(one.requests for one in facts.methods), "request")
        told.append(f"The client sent {requests}; the slowest was {name}, {duration(slowest.slowest_s or 0.0)}.")
    return told


def cause_sentence(group: Group) -> str:
    """The cause, and its cost where it has one."""
    finding = group.example
    clause = findings.clause_for(group.code)
    cost = finding.cost_s or finding.total_s
    each = f" {findings.each_of(finding)}" if finding.calls else " in all"
    text = f"{clause[:1].upper()}{clause[1:]}"
    return f"{text}, which costs {duration(cost)}{each}." if cost > 0 else f"{text}."


def _gap_sentences(run: Run) -> list[str]:
    lacks = []
    if run.recording and run.recording.cut_off:
        lacks.append("The recording was cut off: what came after is not known.")
    if run.recording and run.recording.lost:
        lacks.append(f"{count(run.recording.lost, 'event')} could not be recorded, and may explain more.")
    return lacks
