"""``--prometheus`` and ``--otlp``: export of a load's metrics.

Both need the extra ``mcpace[otel]``. It is checked before the load, so that no load is made in vain.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mcpace.cli.export import check_url
from mcpace.cli.notes import note
from mcpace.lab.errors import LabError

if TYPE_CHECKING:
    from mcpace.report.model.run import Run

NEEDED = {"--prometheus": "prometheus_client", "--otlp": "opentelemetry.exporter.otlp.proto.http"}


def run_exporter(prometheus: Path | None, otlp: str | None) -> Callable[[Run], bool]:
    """Returns a function that exports the finished run and returns whether the file could be written.

    Raises :class:`LabError` where a needed package is missing, and ``UsageProblem`` for an invalid URL.
    """
    for option, wanted in (("--prometheus", prometheus), ("--otlp", otlp)):
        if wanted is not None and not _is_installed(NEEDED[option]):
            raise LabError(f"{option} needs packages that are not installed: pip install 'mcpace[otel]'")
    if otlp is not None:
        check_url(otlp, "http://127.0.0.1:4318/v1/metrics")

    def export_run(run: Run) -> bool:
        written = True
        if prometheus is not None:
            from mcpace.report.metrics.prometheus import write

            try:
                write(run, prometheus)
            except OSError as error:
                note(f"could not write the metrics to {prometheus}: {error.strerror}")
                written = False
        if otlp is not None:
            from mcpace.report.metrics.otlp import send

            # An unreachable collector must not fail a successful load.
            if not send(run, otlp):
                note("the collector at --otlp did not take the metrics; the run itself is complete")
        return written

    return export_run


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
