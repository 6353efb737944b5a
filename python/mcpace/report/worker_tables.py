"""The table of a load's workers: their clocks, their starts, their calls, and the missing parts of the load."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.load import LoadFacts, LoadWorker
from mcpace.report.model.run import Run
from mcpace.report.table import Table
from mcpace.report.words import load as words
from mcpace.report.words.quantities import clean, duration, share

MOST_WORKERS = 300


def worker_tables(run: Run) -> Iterator[Table]:
    """A table for each load that workers made."""
    for case in run.cases:
        if case.load is not None and case.load.workers:
            yield _worker_table(case.load, clean(case.target, 60))


def _worker_table(load: LoadFacts, target: str) -> Table:
    columns = ("worker", "share", "clock", "start", "calls", "failed", "busy", "missing", "")
    rows = [_row(worker) for worker in load.workers[:MOST_WORKERS]]
    return Table("Workers", columns, rows, target, words.worker_notes(load), has_remarks=True)


def _row(worker: LoadWorker) -> tuple[str, ...]:
    return (
        clean(worker.place, 40),
        share(worker.share, 1),
        _signed(worker.time_offset_s),
        _signed(worker.start_skew_s),
        f"{worker.calls:,}",
        f"{worker.errors:,}",
        share(worker.busy, 1) if worker.state == "done" else "–",
        share(worker.missing_share, 1) if worker.missing_share else "–",
        words.worker_remark(worker),
    )


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{'−' if seconds < 0 else '+'}{duration(abs(seconds))}"
