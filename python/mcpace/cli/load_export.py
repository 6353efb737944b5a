"""``--prometheus`` and ``--otlp``: where a load's figures go beside the report, for those who collect metrics.

What they need is the extra ``mcpace[otel]``; asked for before the load, so that none is made in vain.
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


def export(prometheus: Path | None, otlp: str | None) -> Callable[[Run], bool]:
    """What is to be done with the finished run. It says whether files are where they were asked for.

    Raises :class:`LabError` where what it needs is missing, ``UsageProblem`` for a URL that is none.
    """
    for option, wanted in (("--prometheus", prometheus), ("--otlp", otlp)):
        if wanted is not None and not _installed(NEEDED[option]):
            raise LabError(f"{option} needs packages that are not installed: pip install 'mcpace[otel]'")
    if otlp is not None:
        check_url(otlp, "http://127.0.0.1:4318/v1/metrics")

    def exporter(run: Run) -> bool:
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

            # A collector that isn't there must not fail a load that went well.
            if not send(run, otlp):
                note("the collector at --otlp did not take the metrics; the run itself is complete")
        return written

    return exporter


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
