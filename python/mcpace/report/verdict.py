"""The verdict: the one or two sentences at the top of a report.

Design constraint: the verdict says no more than the run proves. It mentions a difference only where the interval
excludes 1 and the difference is large enough to matter. It names a cause only where the finding covers most of the
difference.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from mcpace.report.groups import Group, group_findings, order_operations, targets
from mcpace.report.model.run import Bisection, Case, Run, Subject
from mcpace.report.words import (
    answers,
    check,
    comparison,
    factors,
    findings,
    gateway,
    layers,
    limits,
    load,
    processes,
    recording,
    replicas,
    servers,
    start,
    tokens,
)
from mcpace.report.words.labels import computing_words, part_words
from mcpace.report.words.quantities import clean, count, duration, join_words, share, times
from mcpace.report.words.standing import Standing, standing

COVERING = 0.5
"""A cause explains a difference where it costs at least this share of the difference."""
CLEAR_SHARE = 0.5
"""A bisection separates releases by failures where the shares of failed attempts differ by at least this much."""

START = ("slow-start",)
"""Causes that the sentence on start-up covers."""
FELT = 1.5
"""The verdict mentions a session's first call where it takes at least this many times as long as a later call."""

LONGEST_NAME = 80
LONGEST_NUMBER = 18
"""Maximum number of digits of a release number."""


def verdict(run: Run) -> str:
    """The verdict on a run, in a few sentences of plain text. Text of peers is cleaned; nothing is escaped."""
    return " ".join(sentences(run))


def sentences(run: Run) -> list[str]:
    """The sentences of the verdict, the most important one first."""
    if run.kind == "load":
        return load.sentences(run)
    if run.kind == "servers":
        return servers.sentences(run)
    if run.kind == "layers":
        return layers.sentences(run)
    if run.kind in ("compare", "gate"):
        told = tokens.sentences(run)
        return [*told, *comparison.sentences(run)] if run.comparison is not None or not told else told
    if run.kind == "gateway":
        return gateway.sentences(run)
    if run.replicas is not None:
        return replicas.sentences(run.replicas)
    if run.kind in ("query", "recordings"):
        return answers.sentences(run)
    if run.kind == "explain":
        return factors.sentences(run)
    if run.kind == "limits":
        return limits.sentences(run.client_limits)
    if run.kind == "recording":
        return recording.sentences(run)
    if run.kind == "check":
        return check.sentences(run)
    if run.processes is not None:
        return processes.sentences(run.processes)
    told = _bisection_sentences(run, run.bisection) if run.bisection else _case_sentences(run)
    return [*told, *_failure_sentences(run)]


def subject_words(subject: Subject) -> str:
    """``python 1.12.1``, ``python 2.3.0 (legacy)``."""
    text = " ".join(clean(part, LONGEST_NAME) for part in (subject.sdk, subject.version) if part)
    return f"{text} ({clean(subject.mode, LONGEST_NAME)})" if subject.mode else text


# --- experiments over cases ---


def _case_sentences(run: Run) -> list[str]:
    measured = [case for case in run.cases if case.trials_s]
    if not measured:
        return ["Nothing could be measured." if run.cases else "Nothing was measured."]
    started = start.sentences(run)
    sentences = [text for target in targets(run) for text in _differences_at(run, target)]
    if sentences:
        return [*sentences, *started]
    # A separate sentence covers the start-up, which is paid once a session.
    groups = [
        group for group in group_findings(measured) if group.severity != "low" and not (started and group.code in START)
    ]
    told = [_cause_sentence(groups[0])] if groups else []
    compared = [case for case in measured if case.change]
    if compared:
        if told:
            return [*started, *told, "Where releases could be compared, no difference that matters was seen."]
        return [
            *started,
            f"No difference that matters was seen between {_extent_words(compared)}.",
            _no_cause(measured, told=bool(started)),
        ]
    plain = [_call_time(measured, whole=not started)]
    return [*started, *plain, *(told or [_no_cause(measured, told=bool(started))])]


def _no_cause(measured: list[Case], *, told: bool) -> str:
    """The sentence for a run without an important cause; the report still lists the others. ``told``: whether another
    sentence already covers a slow start-up."""
    match len([group for group in group_findings(measured) if not (told and group.code in START)]):
        case 0:
            return f"No cause of lost time was found{' in its calls' if told else ''}."
        case 1:
            return "One cause of lost time was found, of little weight."
        case found:
            return f"{found} causes of lost time were found, of little weight."


def _differences_at(run: Run, target: str) -> list[str]:
    cases = [case for case in run.cases if case.target == target]
    sentences = []
    for wanted, word in ((Standing.MUCH_SLOWER, "slower"), (Standing.MUCH_FASTER, "faster")):
        changed = [case for case in cases if standing(case.change) is wanted]
        for cause, explained in _group_by_cause(cases, changed, word).items():
            sentences.append(_difference_sentence(cases, explained, word, cause))
        if changed and word == "slower":
            sentences += _fix_sentences(cases, changed)
    return sentences


def _group_by_cause(cases: list[Case], changed: list[Case], word: str) -> dict[str, list[Case]]:
    """The changed cases by the cause that explains their subject, so that no cause is attributed to another subject."""
    by_subject: dict[str, list[Case]] = {}
    for case in changed:
        by_subject.setdefault(case.subject.label(), []).append(case)
    explained: dict[str, list[Case]] = {}
    for label, own in by_subject.items():
        against = own[0].change.against if own[0].change else ""
        slow = label if word == "slower" else against
        cause = _covering_cause([case for case in cases if case.subject.label() == slow], own)
        explained.setdefault(cause, []).extend(own)
    return explained


def _difference_sentence(cases: list[Case], changed: list[Case], word: str, cause: str) -> str:
    who = _subject_names([case.subject for case in changed])
    against = _base_name(cases, changed)
    ratios = [case.change.ratio for case in changed if case.change]
    ratios = [ratio if word == "slower" else 1 / ratio for ratio in ratios]
    operations = order_operations(case.operation for case in changed)
    verb = "is" if len({case.subject.label() for case in changed}) == 1 else "are"
    place = f"at {clean(changed[0].target, LONGEST_NAME)} ({', '.join(operations)})"
    text = f"{who} {verb} {_ratio_range(ratios)} {word} than {against} {place}"
    if cause and word == "faster":
        cause = f"with {against}, {cause}"
    return f"{text}: {cause}." if cause else f"{text}; no known cause was recognised."


def _covering_cause(slow: list[Case], changed: list[Case]) -> str:
    """The cause that covers most of the difference in most slow cases; empty where there is none."""
    lost = {case.operation: abs(case.change.difference_s) for case in changed if case.change}
    for group in group_findings(slow):
        covered = [
            sighting
            for sighting in group.sightings
            if sighting.finding.cost_s >= COVERING * lost.get(sighting.case.operation, float("inf"))
        ]
        if covered and len(covered) >= COVERING * len([case for case in slow if case.operation in lost]):
            return findings.clause_for(group.code)
    return ""


def _fix_sentences(cases: list[Case], slow: list[Case]) -> list[str]:
    """``Fixed in 1.14.0.``, where the run has a newer release of the SDK that is as fast as the first subject again."""
    sdk = slow[0].subject.sdk
    bad = {case.subject.version for case in slow if case.subject.sdk == sdk and case.subject.version}
    slow_operations = {case.operation for case in slow}
    fast: dict[str, set[str]] = {}
    for case in cases:
        fine = standing(case.change) in (
            Standing.SAME,
            Standing.SLOWER,
            Standing.FASTER,
            Standing.MUCH_FASTER,
        )
        if case.subject.sdk == sdk and case.subject.version and case.operation in slow_operations and fine:
            fast.setdefault(case.subject.version, set()).add(case.operation)
    if not bad:
        return []
    newest_bad = max(bad, key=release_order)
    mended = [v for v, seen in fast.items() if seen >= slow_operations and release_order(v) > release_order(newest_bad)]
    return [f"Fixed in {clean(min(mended, key=release_order), LONGEST_NAME)}."] if mended else []


def _cause_sentence(group: Group) -> str:
    sighting = group.sightings[0]
    place = group.places[0]
    where = f"at {start.short_name(place.target)} ({', '.join(place.operations)})"
    clause = findings.clause_for(group.code)
    cost = (
        f", which costs {duration(sighting.finding.cost_s)} {findings.each_of(sighting.finding)}"
        if sighting.finding.cost_s > 0
        else ""
    )
    who = _subject_names([s.case.subject for s in group.sightings])
    return f"With {who} {clause} {where}{cost}."


def _call_time(measured: list[Case], *, whole: bool) -> str:
    """The sentence on the time of a call. ``whole``: whether it names the target, too."""
    case = next((c for c in measured if c.operation == "call"), measured[-1])
    assert case.summary is not None or case.trials_s
    summary = case.summary
    typical_s = summary.median_s if summary else case.trials_s[-1]
    tool = f" to {clean(case.tool, LONGEST_NAME)}" if case.tool and case.operation == "call" else ""
    text = f"{'An' if case.operation[0] in 'aeiou' else 'A'} {case.operation}{tool} takes {duration(typical_s)}"
    if whole:
        text += f" at {start.short_name(case.target)}"
    told = []
    if case.first_s and (first_s := statistics.median(case.first_s)) >= FELT * typical_s:
        told.append(f"the first of a session {duration(first_s)}")
    if case.ledger_s and case.ledger_s.total() > 0:
        name, most = max(case.ledger_s.parts().items(), key=lambda part: part[1])
        if most >= COVERING * case.ledger_s.total():
            told.append(f"{share(most, case.ledger_s.total())} of it {part_words(name)}{_computing(case, name)}")
    return f"{', '.join([text, *reversed(told)])}."


def _computing(case: Case, part: str) -> str:
    """How much of the server's time its process computed, where that was measured."""
    processor = case.ledger_s.server_processor if case.ledger_s else None
    if part != "server" or processor is None or case.operation == "connect":
        return ""
    return f" ({computing_words(processor.processor_s, processor.wall_s)})"


def _failure_sentences(run: Run) -> list[str]:
    failed = [case for case in run.cases if case.error or case.failures]
    now_and_then = sum(1 for case in failed if case.trials_s)
    told, of = [], count(len(run.cases), "case")
    if len(failed) > now_and_then:
        told.append(f"{len(failed) - now_and_then} of {of} failed or could not be measured.")
    if now_and_then:
        told.append(f"In {now_and_then} of {of} some trials failed.")
    return told


# --- bisection ---


def _bisection_sentences(run: Run, search: Bisection) -> list[str]:
    sdk, target = clean(search.sdk, LONGEST_NAME), clean(search.target, LONGEST_NAME)
    found = run.first_bad or run.first_good
    if found is None:
        return [f"No release of {sdk} between {clean(search.good)} and {clean(search.bad)} could be named at {target}."]
    found = clean(found, LONGEST_NAME)
    neighbour = clean(search.neighbour or (search.good if run.first_bad else search.bad), LONGEST_NAME)
    changed = f"{sdk} {found} is the first bad release" if run.first_bad else f"{sdk} {found} fixed it"
    sentences = [f"{changed} at {target}{_bisection_figures(run, search, neighbour)}."]
    if run.untestable:
        releases = join_words([clean(version, LONGEST_NAME) for version in run.untestable])
        them = "it" if len(run.untestable) == 1 else "them"
        sentences.append(f"{releases} could not be tested, so the change may already be in {them}.")
    return sentences


def _bisection_figures(run: Run, search: Bisection, neighbour: str) -> str:
    failing = _failure_figures(run, search, neighbour)
    if failing:
        return failing
    bad = [probe for probe in search.probes if probe.verdict == "bad" and probe.medians_s]
    good = [probe for probe in search.probes if probe.verdict == "good" and probe.medians_s]
    shared = set(bad[0].medians_s) & set(good[0].medians_s) if bad and good else set()
    if not shared:
        return f" (against {neighbour})"
    operation = max(sorted(shared), key=lambda name: bad[0].medians_s[name] / max(good[0].medians_s[name], 1e-9))
    slow, fast = duration(bad[0].medians_s[operation]), duration(good[0].medians_s[operation])
    now, before = (slow, fast) if run.first_bad else (fast, slow)
    text = f": a {clean(operation, LONGEST_NAME)} takes {now}, against {before} in {neighbour}"
    common = set.intersection(*(set(probe.findings) for probe in bad))
    cause = next((code for code in bad[0].findings if code in common and code not in good[0].findings), None)
    if cause is None:
        return text
    return f"{text}; {findings.clause_for(cause)}" if run.first_bad else f"{text}, where {findings.clause_for(cause)}"


def _failure_figures(run: Run, search: Bisection, neighbour: str) -> str:
    """The shares of failed attempts; empty where failures don't separate the releases."""
    bad, good = ([probe for probe in search.probes if probe.verdict == kind] for kind in ("bad", "good"))
    if not bad or not good:
        return ""
    for operation, failed in bad[0].failed.items():
        worked = good[0].failed.get(operation, 0.0)
        if failed - worked >= CLEAR_SHARE:
            now, before = (failed, worked) if run.first_bad else (worked, failed)
            name = clean(operation, LONGEST_NAME)
            return f": {share(now, 1)} of the attempts to {name} fail, against {share(before, 1)} in {neighbour}"
    return ""


# --- names ---


def _subject_names(found: Sequence[Subject]) -> str:
    """``python 1.12.1 and 1.13.0``; the name of an SDK that all subjects share is written once."""
    unique = list({subject.label(): subject for subject in found}.values())
    if len({subject.sdk for subject in unique}) == 1 and all(s.version and not s.mode for s in unique):
        return f"{clean(unique[0].sdk, LONGEST_NAME)} {join_words([clean(s.version, LONGEST_NAME) for s in unique])}"
    return join_words([subject_words(subject) for subject in unique])


def _base_name(cases: list[Case], changed: list[Case]) -> str:
    label = changed[0].change.against if changed[0].change else ""
    first = next((case.subject for case in cases if case.subject.label() == label), None)
    if first is None:
        return clean(label, LONGEST_NAME)
    same_sdk = all(case.subject.sdk == first.sdk for case in changed) and first.version and not first.mode
    return clean(first.version, LONGEST_NAME) if same_sdk else subject_words(first)


def _ratio_range(ratios: list[float]) -> str:
    low, high = min(ratios), max(ratios)
    if high / low < 1.2:
        return times(high)
    return f"{times(low).removesuffix('×')} to {times(high)}"


def _extent_words(compared: list[Case]) -> str:
    against = {case.change.against for case in compared if case.change}
    releases = len({case.subject.label() for case in compared} | against)
    return f"{count(releases, 'release')} at {count(len({case.target for case in compared}), 'target')}"


def release_order(version: str) -> tuple[tuple[int, ...], int, str]:
    """Sort key for the releases of one SDK: by numbers, and pre-releases before their release. It is an approximation
    of the package indexes' own orders."""
    match = re.match(r"v?(\d+(?:\.\d+)*)(.*)", version)
    if match is None:
        return (), 0, version
    numbers = tuple(int(part[:LONGEST_NUMBER]) for part in match[1].split(".")[:6])
    return numbers, 0 if match[2] else 1, match[2]
