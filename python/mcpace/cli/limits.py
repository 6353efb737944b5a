"""``mcpace limits``: after which time real SDK releases give up, by layer."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress
from mcpace.lab.defaults import LIMITS_LONGEST_S


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("limits")(limits)


def limits(
    subjects: Annotated[
        list[str], typer.Argument(metavar="SDK@VERSION[:MODE]...", help="Releases, e.g. python@1.12.1.")
    ],
    timeout: options.Timeout = f"{LIMITS_LONGEST_S:.0f}s",  # type: ignore[assignment]  # read by its parser
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Find the time after which releases of SDKs give up, for each layer of a call. --timeout is the longest time that
    is tried.

    All layers wait at the same time. The search then repeats the wait with other times, so a client takes two to three
    times the longest limit.
    """
    from mcpace.lab import journal
    from mcpace.lab.clients.limits import LimitsPlan, run_limits

    with show_progress() as display, journal.record_progress(display, out, "limits", ", ".join(subjects)) as progress:
        run = run_limits(LimitsPlan(tuple(subjects), timeout), progress)
    deliver_run(run, as_json=as_json, out=out, page=html)
