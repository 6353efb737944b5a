"""``mcpace demo``: shows the main features on embedded targets, in a minute."""

from __future__ import annotations

from pathlib import Path

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress

RELEASES = ("python@1.11.0", "python@1.12.1", "python@1.13.0", "python@1.14.0")
TARGETS = ("profile:simple", "profile:notion", "profile:github")
TRIALS = 5
"""One cold trial, and four warm ones, which an interval requires."""
HOLD_S = 1.0
"""Seconds that a stream stays open. At the real server it was about 10 s; a demo must be shorter."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)


def demo(out: options.Out = None, html: options.Html = Path("report.html"), as_json: options.Json = False) -> None:
    """Measure four releases of the Python SDK against three scripted servers, and name a regression's cause.

    Then put load on a server that writes its replies in two pieces, and prove why its calls wait.
    """
    from mcpace.lab import delayed_ack_demo, journal, targets
    from mcpace.lab.clients.plan import Plan, Settings
    from mcpace.lab.clients.run_clients import run_clients

    places = tuple(targets.parse_target(text) for text in TARGETS)
    with show_progress() as display, journal.record_progress(display, out, "demo", ", ".join(RELEASES)) as progress:
        progress.note(f"{len(RELEASES)} releases of the Python SDK, {len(TARGETS)} scripted servers: a minute or so")
        run = run_clients(Plan(RELEASES, places, Settings(TRIALS, HOLD_S)), progress)
        if not run.partial:
            try:
                run.cases += delayed_ack_demo.variant_cases(progress)
            except KeyboardInterrupt:
                run.partial = True
    run.kind = "demo"
    deliver_run(run, as_json=as_json, out=out, page=html)
