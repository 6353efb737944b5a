"""A query as a Run, so that it is printed, saved and shown as a page as every other result."""

from __future__ import annotations

from typing import Any

from mcpace.lab.machine import new_run
from mcpace.lab.tables.questions import QUESTIONS, Scope, answer_sql
from mcpace.lab.tables.read import Tables
from mcpace.report.model.run import Run


def run_query(tables: Tables, questions: list[str], scope: Scope, sql: str | None, options: dict[str, Any]) -> Run:
    """Answers the questions, or the statement of a user."""
    run = new_run("query", options)
    if sql is not None:
        run.answers = [answer_sql(tables, sql)]
    else:
        run.answers = [QUESTIONS[question](tables, scope) for question in questions]
    return run
