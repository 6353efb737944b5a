"""``mcpace query``: questions to the tables of many recordings."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from mcpace.cli import options
from mcpace.cli.notes import note
from mcpace.cli.output import deliver_run
from mcpace.cli.times import parse_age, parse_moment
from mcpace.lab.errors import UnknownName, UsageProblem
from mcpace.lab.files import is_unicode
from mcpace.report.words.quantities import clean

QUESTION_NAMES = ("latency", "slower", "findings", "dependencies")
LIMIT: Any = "5m"
FORMULA = ("=", "+", "-", "@")
"""First characters of a formula in a spreadsheet."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("query")(query)


def query(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER|URL", help="The folder or store of `export --parquet`, s3://BUCKET/FOLDER.")
    ],
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION",
            help="latency: percentiles by server and tool; slower: the same before and since a time; findings: their "
            "costs; dependencies: the waits for them. [default: all; slower only with --since]",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Rows since then: an age as 7d or 24h, or a time in UTC as 2026-11-20T14:30."
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="For slower: length of the time before --since to compare with. [default: all]"
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this server, by its name in the tables.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="SELECT", help="A statement of your own over exchanges, calls, findings and dependencies."
        ),
    ] = None,
    timeout: options.Timeout = LIMIT,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV on stdout, and nothing else.")] = False,
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Ask the exported tables of many recordings: latency by server and tool, what got slower, which findings and
    dependencies cost most, or a statement in DuckDB's SQL.

    The statement reads these tables only: no other file, no network.
    """
    # Imported late: it needs an extra.
    from mcpace.lab.tables.questions import QUESTION_TABLES, Scope, first_day
    from mcpace.lab.tables.read import open_tables
    from mcpace.lab.tables.run_query import run_query
    from mcpace.lab.tables.schema import TABLES

    questions = _chosen(question, sql, since)
    if as_csv and (as_json or out is not None or html is not None):
        raise UsageProblem("--csv prints rows alone: leave out --json, --out and --html")
    if as_csv and sql is None and question is None:
        raise UsageProblem(f"--csv takes one question: {', '.join(QUESTION_NAMES)}, or --sql")
    if sql is not None and (since, before, source) != (None, None, None):
        raise UsageProblem("--since, --before and --source belong to a question: write them into the statement")
    if before is not None and "slower" not in questions:
        raise UsageProblem("--before belongs to the question slower")
    try:
        begin = None if since is None else parse_moment(since, datetime.now(UTC))
        baseline = None if begin is None or before is None else begin - parse_age(before)
    except OverflowError as error:
        raise UsageProblem(f"--before {before} begins before the first year") from error
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    if source is not None and not is_unicode(source):
        raise UsageProblem("--source must be UTF-8 text")
    scope = Scope(begin, baseline, source)
    needed = TABLES if sql is not None else {QUESTION_TABLES[name] for name in questions}
    with open_tables(folder, timeout, needed, first_day(questions, scope)) as tables:
        if as_csv and sql is not None:
            _write_csv(*tables.select(sql))
            return
        run_options = {"question": question, "since": since, "before": before, "source": source, "sql": sql}
        run = run_query(
            tables, questions, scope, sql, {name: value for name, value in run_options.items() if value is not None}
        )
    if as_csv:
        [answer] = run.answers
        _write_csv(answer.columns, answer.rows)
        if answer.is_cut:
            note(f"there are more than {len(answer.rows):,} rows; --sql has all of them")
        return
    deliver_run(run, as_json=as_json, out=out, page=html)


def _chosen(question: str | None, sql: str | None, since: str | None) -> list[str]:
    if question is not None and sql is not None:
        raise UsageProblem("give a question or --sql, not both")
    if question is not None and question not in QUESTION_NAMES:
        raise UnknownName("question", question, QUESTION_NAMES)
    if question == "slower" and since is None:
        raise UsageProblem(
            "slower needs --since: the time since which something may have got slower, as 7d or 2026-11-20"
        )
    if question is not None:
        return [question]
    return [name for name in QUESTION_NAMES if name != "slower" or since is not None]


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints rows as CSV. Texts come from peers, so control characters are removed, and a text that a spreadsheet would
    take for a formula gets an apostrophe before it."""
    from mcpace.lab.tables.questions import plain_cell

    if sys.stdout is None:  # closed
        return
    written = csv.writer(sys.stdout, lineterminator="\n")
    written.writerow([clean(name) for name in columns])
    for row in rows:
        cells = map(plain_cell, row)
        written.writerow([_csv_text(cell) if isinstance(cell, str) else cell for cell in cells])


def _csv_text(text: str) -> str:
    from mcpace.lab.tables.questions import LONGEST_CELL

    shown = clean(text, LONGEST_CELL)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
