"""Builds the page's model from a Run; each part of the page has a module of its own beside this one.

Design constraint: decisions and sentences are made in Python, the page only arranges and draws. All text is plain,
clean and bounded; the page inserts it as text. The model stays small for any Run: excess data is thinned or left out,
and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from mcpace.report.groups import group_findings, subjects, targets
from mcpace.report.model.run import Case, Run
from mcpace.report.page import calls, comparison, factors, findings, inside, layers, load, search, servers, setup
from mcpace.report.page.call_pairs import pairs
from mcpace.report.page.model import CaseShown, Head, Page, Part, Share, SummaryShown, TableShown
from mcpace.report.tables import tables
from mcpace.report.verdict import sentences
from mcpace.report.words.labels import LAYERS, PARTS, PHASES, server_notes, split_parts
from mcpace.report.words.quantities import clean, join_words, round_digits, times
from mcpace.report.words.standing import Standing, change_words, standing, state_words

MOST_TRIALS = 20_000
"""Maximum number of drawn trials of all cases together."""
MOST_OF_ONE = 400
LEAST_OF_ONE = 20
NAMED = 4
"""Maximum number of subjects and of targets that the line of a run in a list names."""


def page_of(run: Run) -> Page:
    """The page's model of a run."""
    chosen = pairs(run)
    places = {id(case): number for number, case in enumerate(run.cases)}
    groups = group_findings(run.cases)
    codes = {group.code: number for number, group in enumerate(groups)}
    most = min(MOST_OF_ONE, max(LEAST_OF_ONE, MOST_TRIALS // max(1, len(run.cases))))
    # Loads, comparisons of servers and layers have no trials and separate views.
    cases = [_case_view(case, most) for case in run.cases]
    if run.servers or (run.kind == "recording" and not any(case.trials_s or case.failures for case in run.cases)):
        # Such cases have no trials to draw, so their state would be misleading.
        for shown in cases:
            shown.state = ""
    for case, shown in zip(run.cases, cases, strict=True):
        shown.codes = [codes[code] for code in dict.fromkeys(finding.code for finding in case.findings)]
    for pair in chosen:
        shown = cases[places[id(pair.case)]]
        shown.call = calls.call(pair.case, codes)
        if pair.better is not None:
            shown.better = places[id(pair.better)]
            cases[shown.better].call = calls.call(pair.better, codes)
    return Page(
        head=head(run),
        subjects=[clean(label, 60) for label in subjects(run)],
        targets=[clean(target, 120) for target in targets(run)],
        cases=cases,
        pairs=[places[id(pair.case)] for pair in chosen],
        findings=[findings.finding_of(group, places) for group in groups],
        # The load of an experiment is its instrument and not a result.
        loads=[] if run.factors else load.loads(run),
        servers=servers.comparison_of(run),
        layers=layers.layers_of(run),
        search=search.search_of(run),
        comparison=comparison.comparison_of(run),
        factors=factors.factors_of(run),
        inside=inside.insides_of(run),
        tables=[TableShown.model_validate(asdict(table)) for table in tables(run, is_page=True)],
        parts=[Part(key=key, words=f"time {words}") for key, words in PARTS.items()]
        + [Part(key=key, words=words) for key, words in LAYERS.items()],
        phases=[Part(key=key, words=words) for key, words in PHASES.items()]
        + [Part(key=calls.LISTENING, words=calls.LISTENING_WORDS)],
        ledger_words=setup.ledger_words(run),
        setup=setup.facts(run),
        packages=setup.packages(run),
        method=setup.method(run),
    )


def head(run: Run) -> Head:
    """Returns the summary of a run."""
    return Head(
        kind=run.kind,
        started=clean(run.started, 40),
        mcpace=clean(run.mcpace, 40),
        partial=run.partial,
        verdict=sentences(run),
        subjects=_join_names([clean(label, 60) for label in subjects(run)]),
        targets=_join_names([clean(target, 120) for target in targets(run)]),
        machine=setup.machine(run),
    )


def _join_names(names: list[str]) -> str:
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return join_words(names)


def _case_view(case: Case, most: int) -> CaseShown:
    now = standing(case.change)
    shown = [] if case.load is not None or case.layer is not None else case.trials_s
    every = max(1, -(-len(shown) // most))
    return CaseShown(
        subject=clean(case.subject.label(), 60),
        target=clean(case.target, 120),
        operation=case.operation,
        tool=clean(case.tool or "", 60),
        trials_s=[round_digits(trial) for trial in shown[::every]],
        trials=len(shown),
        summary=_summary_view(case),
        tone=now.value,
        change=change_words(case.change),
        note=_change_note(case, now),
        state="" if case.load is not None or case.layer is not None else state_words(case),
        reason=clean(case.unsupported or case.error or next(iter(case.failures), "")),
        ledger=list(_ledger_shares(case)),
        split=list(_split_shares(case)),
        server_notes="; ".join(server_notes(case)),
    )


def _summary_view(case: Case) -> SummaryShown | None:
    told = case.summary
    if told is None:
        return None
    return SummaryShown(
        first_s=told.first_s, median_s=told.median_s, mean_s=told.mean_s, min_s=told.min_s, max_s=told.max_s
    )


def _change_note(case: Case, now: Standing) -> str:
    if case.change and now is Standing.MUCH_SLOWER:
        return f"{times(case.change.ratio)} slower"
    if case.change and now is Standing.MUCH_FASTER:
        return f"{times(1 / case.change.ratio)} faster"
    return ""


def _ledger_shares(case: Case) -> Iterator[Share]:
    if case.ledger_s is not None:
        for name, seconds in case.ledger_s.parts().items():
            yield Share(key=name, seconds=round_digits(max(seconds, 0.0)))


def _split_shares(case: Case) -> Iterator[Share]:
    if case.ledger_s is not None and case.ledger_s.server_split is not None:
        for name, seconds in split_parts(case.ledger_s.server_split).items():
            yield Share(key=name, seconds=round_digits(max(seconds, 0.0)))
