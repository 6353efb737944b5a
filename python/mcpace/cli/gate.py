"""``mcpace gate``: fails a CI job where a target is slower than its base, broken, or lists other tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.compare_options import Drift, Junit, Markdown, Tolerance, checked_drift, comparison_writer
from mcpace.cli.file_kind import load_run
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress
from mcpace.lab.defaults import GATE_TRIALS
from mcpace.lab.targets import Target


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gate")(gate)


def gate(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET|RUN", help="The target to judge, as for `measure`, or a saved run (.json)."),
    ],
    base: Annotated[
        str | None,
        typer.Option(metavar="TARGET", help="The base side, measured here in turns with TARGET."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A saved run as the base side, if the old state cannot be run any more."),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens that the tools of a server may take.", min=1)
    ] = None,
    max_result_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens of one result of --tool.", min=1)
    ] = None,
    tolerance: Tolerance = "10%",  # type: ignore[assignment]  # read by its parser
    drift: Drift = "breaking",
    trials: options.Trials = GATE_TRIALS,
    calls: options.Calls = options.CALLS,
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    revision: options.Revision = None,
    auth: options.Authentication = None,
    header: options.Header = [],  # noqa: B006 - typer copies it
    config: options.Config = None,
    cacert: options.Cacert = None,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    python: options.Python = None,
    timeout: options.Timeout = options.TIMEOUT,
    markdown: Markdown = None,
    junit: Junit = None,
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Fail (exit code 1) where TARGET is slower than --base or --baseline by more than the tolerance, or broken.

    A red verdict is measured a second time before it counts. A newly found cause of lost time is red, too, and so is a
    change of the tools that breaks callers (--drift). Exit code 4 means inconclusive: a figure looks worse than the
    tolerance allows, but its interval is too wide to decide.

    --tokens and --max-result-tokens fail where TARGET takes more tokens of a model's context; they need no base.
    """
    from mcpace.lab import journal, targets
    from mcpace.lab.clients.plan import Settings
    from mcpace.lab.compare import gate as lab
    from mcpace.lab.compare.token_limits import TokenLimits
    from mcpace.lab.errors import UsageProblem
    from mcpace.lab.headers import parse_headers
    from mcpace.lab.tokens import require_tokenizer

    limits = TokenLimits(tokens, max_result_tokens)
    if limits:
        require_tokenizer()
    is_alone = bool(limits) and base is None and baseline is None
    if (base is None) == (baseline is None) and not is_alone:
        raise UsageProblem("give either --base TARGET, measured here in turns, or --baseline FILE, a run from before")
    limit = checked_drift(drift)
    before = load_run(baseline) if baseline is not None else None
    also = comparison_writer(markdown, junit)
    # A name that ends in .json and isn't a target's address means a file, whether it exists or not.
    if target.endswith(".json") and (options.is_file(target) or (before is not None and ":" not in target)):
        if is_alone:
            return deliver_run(
                limits.run_of_file(load_run(Path(target))), as_json=as_json, out=out, page=html, also=also
            )
        if before is None:
            raise UsageProblem(
                f"{target} is a run that was measured already: hold it against one, with --baseline FILE"
            )
        run = lab.run_of_files(before, load_run(Path(target)), tolerance, limit)
        limits.check(run)
        return deliver_run(run, as_json=as_json, out=out, page=html, also=also)
    checked_revision = options.checked_revision(revision)
    call, way_in = options.chosen_tool(tool, args), options.checked_authentication(auth)
    added = parse_headers(header)
    interpreter = options.interpreter_path(python)

    def parse_side(text: str) -> Target:
        return targets.parse_target(text, config=config, auth=way_in, tool=call, headers=added, python=interpreter)

    place = parse_side(target)
    other = parse_side(base) if base is not None else None
    against = other or before
    faults = options.checked_faults(fault, [place, other] if other else [place])
    settings = Settings(trials, hold, faults, timeout, calls=calls)
    with show_progress() as display, journal.record_progress(display, out, "gate", place.name) as progress:
        if against is None:
            run = limits.run(place, replace(settings, trials=1), progress, checked_revision)
        else:
            question = lab.Gate(
                place, against, tolerance, revision=checked_revision, extra_root=cacert, drift_limit=limit
            )
            run = lab.run(question, settings, progress)
            limits.check(run)
    return deliver_run(run, as_json=as_json, out=out, page=html, also=also)
