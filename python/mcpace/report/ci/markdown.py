"""A Run as Markdown, for the summary of a CI job or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mcpace.report.ci.problems import gate_outcome, problems
from mcpace.report.model.comparison import Comparison
from mcpace.report.model.run import Run
from mcpace.report.verdict import sentences
from mcpace.report.words.comparison import (
    METRICS,
    left_out,
    place,
    ratio_words,
    sees_words,
    sides,
    value,
    verdict_words,
    warnings,
)
from mcpace.report.words.quantities import NO_BREAK, clean, count, duration

MOST_PROBLEMS = 20
NO_LINK = "\N{ZERO WIDTH SPACE}"
MARKUP = re.compile(r"([\\`*\[\]<>#|~&@]|(?<![^\W_])_|_(?![^\W_])|^[+-])")
"""Characters that GitHub's Markdown interprets as markup. An underscore within a word and a hyphen within a line are
not markup and are not escaped, so that names stay readable in a log."""


def markdown(run: Run) -> str:
    """The run as Markdown: a heading, the verdict, a table of the figures, and the problems that were found."""
    lines = [f"### {_title(run)}", "", *(_escape_markdown(sentence) + "  " for sentence in sentences(run)), ""]
    made = run.comparison
    if made is None:
        lines += _trial_table(run)
    elif made.attempts:
        lines += _comparison_table(made)
    lines += [*_problem_list(run), *_origin(run), ""]
    return "\n".join(lines)


def _title(run: Run) -> str:
    if run.kind == "gate":
        return f"Gate: {gate_outcome(run)}"
    return "Comparison" if run.kind == "compare" else f"mcpace {run.kind}"


def _comparison_table(made: Comparison) -> Iterator[str]:
    yield from _table(
        ("", "figure", "first", "second", "ratio (95 %)", "would see", ""),
        [
            (
                place(row.subject, row.target, row.operation, row.tool),
                METRICS[row.metric],
                value(row, row.base),
                value(row, row.now),
                ratio_words(row),
                sees_words(row),
                verdict_words(row),
            )
            for row in made.attempts[-1].rows
        ],
    )
    notes = [*warnings(made), *left_out(made)]
    yield from (f"- {_escape_markdown(note)}" for note in notes)
    yield ""


def _trial_table(run: Run) -> Iterator[str]:
    cases = [case for case in run.cases if case.summary is not None]
    rows = [
        (
            place(case.subject.label(), case.target, case.operation, case.tool),
            duration(case.summary.first_s),
            duration(case.summary.median_s),
            str(len(case.trials_s)),
        )
        for case in cases
        if case.summary is not None
    ]
    if rows:
        yield from _table(("", "first trial", "median", "trials"), rows)


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """A table whose first column, and whose last one without a heading, hold text; the others hold figures."""
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---:' if column and column != 'figure' else '---' for column in columns)} |"
    for row in rows:
        yield f"| {' | '.join(_escape_markdown(cell) for cell in row)} |"
    yield ""


def _problem_list(run: Run) -> Iterator[str]:
    """The findings. Rows of the table and thresholds of the verdict have been shown already."""
    found = [problem for problem in problems(run) if problem.code not in ("slower", "broken", "not-judged")]
    for problem in found[:MOST_PROBLEMS]:
        where = f"{problem.file}:{problem.line}" if problem.file is not None else problem.target
        mark = " (new)" if problem.is_new else ""
        title, told = _escape_markdown(problem.title), _escape_markdown(problem.text)
        yield f"- **{title}**{mark}, {_escape_markdown(where)}: {told}"
    if len(found) > MOST_PROBLEMS:
        yield f"- {count(len(found) - MOST_PROBLEMS, 'more problem')}"
    if found:
        yield ""


def _origin(run: Run) -> Iterator[str]:
    """The machine of each side, and the release of mcpace."""
    told = sides(run)
    for name, what, where in told:
        yield _escape_markdown(f"{name}: {what}, {where.cores} cores, {clean(where.cpu, 60)}") + "  "
    machine = run.machine
    here = "" if len(told) == 2 else f", {machine.cores} cores, {clean(machine.cpu, 60)}"
    yield _escape_markdown(f"mcpace {run.mcpace}, {run.started}{here}")


def _escape_markdown(text: str) -> str:
    escaped = MARKUP.sub(r"\\\1", clean(text, 1000)).replace(NO_BREAK, " ")
    # GitHub links addresses, user names and issue numbers even if they are escaped.
    return re.sub(r"(?i)(:)(?=//)|(www)(?=\\?\.)|([@#])", lambda match: match[0] + NO_LINK, escaped)
