"""Output of a finished run: saves the run, shows it, and sets the exit code.

Design constraint: the Run's models and its words are imported when there is a run, since every command of the lab
imports this module.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mcpace.cli.atomic_write import is_other, replace_atomically
from mcpace.cli.notes import flush_stdout, give_up_stdout, inform, note
from mcpace.lab import journal
from mcpace.lab.errors import LabError, UnknownName
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt

if TYPE_CHECKING:
    from mcpace.report.model.comparison import Comparison
    from mcpace.report.model.load import LoadOperation
    from mcpace.report.model.run import Case, Run

DONE, HIT, UNREACHABLE, INCONCLUSIVE, INTERRUPTED = 0, 1, 3, 4, 130


def deliver_run(
    run: Run,
    *,
    as_json: bool,
    out: Path | None,
    page: Path | None = None,
    fail_on: list[str] | None = None,
    also: Callable[[Run], bool] | None = None,
    tool: str | None = None,
) -> None:
    """Saves and shows ``run`` and exits with its exit code.

    ``also`` writes further files after the run is saved, and returns whether it succeeded. ``tool``: the tool that the
    user named; if all of its calls failed, the command fails, regardless of other measurements.
    """
    with defer_interrupt():
        is_saved = save_and_show(run, as_json=as_json, out=out, page=page, also=also)
    code = _exit_code(run, fail_on or [])
    if code == INTERRUPTED and not run.cases:
        note("interrupted before anything was measured")
    elif code == HIT and run.kind == "load":
        _note_thresholds(run)
    elif code == UNREACHABLE and (missing := _missing_part(run)):
        note(f"the load is not complete: {missing}")
    elif code == UNREACHABLE and run.comparison is None and run.kind != "check":
        note(f"nothing could be measured: {_failure_reason(run)}")
    elif code == DONE and tool is not None and (why := _failed_call_reason(run)):
        note(f"every call to {tool} failed: {why.removeprefix('call: ')}")
        code = UNREACHABLE
    elif code == DONE and not is_saved:
        code = UNREACHABLE
    if code:
        raise typer.Exit(code)


def save_and_show(
    run: Run, *, as_json: bool, out: Path | None, page: Path | None, also: Callable[[Run], bool] | None = None
) -> bool:
    """Saves and shows ``run``. Returns whether every requested file was written to its path.

    Ctrl-C doesn't interrupt saving, but it interrupts the following steps, which may wait for other programs. In that
    case, and where stdout fails, a run without ``--out`` is saved under a default name.
    """
    is_default = out is None
    if out is None and run.partial and run.cases and not as_json:
        out = _default_path(run)
    place = out and _save_run(run, out, is_default=is_default)
    if out is not None:
        journal.remove_journal(out)
    # A run that couldn't be saved anywhere is printed.
    as_json |= out is not None and place is None
    try:
        with allow_interrupt():
            done = also is None or also(run)
            return show_run(run, as_json=as_json, page=page) and done and place == out
    except (KeyboardInterrupt, OSError):
        if out is None and run.cases:
            _save_run(run, _default_path(run), is_default=True)
        raise


def show_run(run: Run, *, as_json: bool, page: Path | None) -> bool:
    """Prints ``run`` for people or as JSON, and writes its page. Returns whether the page was written to its path.

    The page comes first, since the reader of stdout may close the pipe early, which is not a failure.
    """
    written = page and save_text(page, _page_html(run), "report")
    try:
        if as_json:
            print(run.to_json())
        else:
            from mcpace.cli.screen import Screen
            from mcpace.report.terminal import print_run

            print_run.print_run(run, Screen())
        flush_stdout()
    except BrokenPipeError:
        give_up_stdout()
    return written == page


def _default_path(run: Run) -> Path:
    """Default path of a run."""
    return Path(f"mcpace-{run.kind}-{time.strftime('%Y%m%d-%H%M%S')}.{'partial.' if run.partial else ''}json")


def _save_run(run: Run, path: Path, *, is_default: bool) -> Path | None:
    return save_text(path, run.to_json(), f"run {'so far ' if run.partial else ''}saved", is_default=is_default)


def _page_html(run: Run) -> str:
    # Imported late: the page's models take time to import, and most runs have no page.
    from mcpace.report.page import html

    try:
        return html.render(run)
    except html.NotBuilt as error:
        raise LabError(str(error)) from error


def _failure_reason(run: Run) -> str:
    from mcpace.report.words.factors import reason_words

    for case in run.cases:
        reason = (
            case.error
            or case.unsupported
            or next((one.first_error for one in (case.by_tool or {}).values() if one.first_error), None)
        )
        reason = reason or next((one.first_error for one in _other_operations(case) if one.first_error), None)
        if reason:
            return reason
        if case.load is not None and not case.load.intended:
            return "no call was due in so short a time"
    left_out = (reason for one in run.factors if (reason := reason_words(one)))
    return next(left_out, "no reason given")


def _failed_call_reason(run: Run) -> str:
    calls = [case for case in run.cases if case.operation == "call"]
    return next((case.error for case in calls if case.error and not case.trials_s), "")


def _missing_part(run: Run) -> str:
    """The part of a load that is missing; empty where no call was measured, and nothing else needs a reason."""
    from mcpace.report.words.load import missing_words

    loads = [case.load for case in run.cases if case.load and case.latency_s and case.load.ended != "failed"]
    return next((words for load in loads if (words := missing_words(load))), "")


def _other_operations(case: Case) -> list[LoadOperation]:
    return list(case.load.others.values()) if case.load else []


def check_codes(codes: list[str]) -> None:
    """Refuses ``--fail-on`` codes that no finding has.

    Raises :class:`UnknownName`.
    """
    if not codes:
        return
    from mcpace.report.words.findings import CODES

    known = [*CODES, "any"]
    for code in codes:
        if code not in known:
            raise UnknownName("finding", code, known)


def _exit_code(run: Run, fail_on: list[str]) -> int:
    from mcpace.report.model.comparison import INSTRUMENTS

    if run.partial:
        return INTERRUPTED
    found: set[str] = {finding.code for case in run.cases for finding in case.findings}
    found |= {finding.code for finding in run.processes.findings} if run.processes is not None else set()
    found |= {finding.code for finding in run.replicas.findings} if run.replicas is not None else set()
    found |= {str(row[0]) for answer in run.answers if answer.question == "costs" for row in answer.rows}
    if found & set(fail_on) or (found - INSTRUMENTS and "any" in fail_on):
        return HIT
    if run.kind == "gate" and any(not limit.is_met for limit in run.limits):
        return HIT
    if run.kind == "gate" and run.limits and run.comparison is None:
        return DONE
    if run.comparison is not None:
        return _exit_code_of_comparison(run, run.comparison)
    if run.kind in ("recording", "recordings", "query"):
        return DONE
    if run.kind == "check":
        failed = any(case.error and not case.trials_s for case in run.cases if case.operation == "connect")
        return UNREACHABLE if failed else DONE
    if run.kind == "limits":
        return (
            DONE if any(not facts.unknown for client in run.client_limits for facts in client.layers) else UNREACHABLE
        )
    if run.kind == "explain":
        is_located = run.ladder is not None and bool(run.ladder.layers)
        return DONE if is_located or any(one.ratio is not None for one in run.factors) else UNREACHABLE
    if run.kind == "load":
        return _exit_code_of_load(run)
    if run.kind == "servers":
        return DONE if any(case.throughput_rps for case in run.cases) else UNREACHABLE
    reached = (case for case in run.cases if case.operation != "provider")
    if run.cases and not any(case.trials_s or case.unsupported for case in reached):
        return UNREACHABLE
    return DONE


def _exit_code_of_comparison(run: Run, comparison: Comparison) -> int:
    if run.kind in ("compare", "gateway"):
        return DONE
    if comparison.red:
        return HIT
    if not comparison.judged:
        return UNREACHABLE
    return INCONCLUSIVE if comparison.inconclusive else DONE


def _exit_code_of_load(run: Run) -> int:
    """Exit code of a load. A threshold that isn't met takes precedence over an unreachable target."""
    from mcpace.report.words.load import missing_words

    facts = [case.load for case in run.cases if case.load]
    if any(not threshold.met for load in facts for threshold in load.thresholds):
        return HIT
    if any(load.ended == "failed" for load in facts) or not any(case.latency_s for case in run.cases):
        return UNREACHABLE
    if any(missing_words(load) for load in facts):
        return UNREACHABLE
    return DONE


def _note_thresholds(run: Run) -> None:
    from mcpace.report.words.load import threshold_words

    for case in run.cases:
        for threshold in case.load.thresholds if case.load else []:
            if not threshold.met:
                note(f"threshold {threshold.text} is not met: {threshold_words(threshold)}")


def save_text(path: Path, text: str, what: str, *, is_default: bool = False) -> Path | None:
    """Writes a file atomically and prints its path. Falls back to a temporary folder where ``path`` can't be written.

    ``is_default``: the user did not name the path, so that it is printed with ``--quiet`` too.

    Returns the path of the written file; ``None`` where both failed.
    """
    refused = ""
    for wanted in (path, None):
        place = wanted
        try:
            # Finding a temporary folder fails where no disk has room.
            place = wanted or _temporary_file(path)
            with defer_interrupt():
                _write_text(place, text)
        except OSError as error:
            refused += f"could not write {place or 'a temporary file'} ({error.strerror}): "
            if wanted is None and place is not None:
                place.unlink(missing_ok=True)
        else:
            # A path that the user did not name is never left out.
            (note if refused or is_default else inform)(f"{refused}{what} in {place}")
            return place
    note(refused.removesuffix(": "))
    return None


def _temporary_file(path: Path) -> Path:
    """Creates a temporary file with a random name, since a predictable name may be another user's link."""
    handle, name = tempfile.mkstemp(prefix="mcpace-", suffix=f"-{path.name[-100:]}")
    os.close(handle)
    return Path(name)


def _write_text(path: Path, text: str) -> None:
    if is_other(path):
        with path.open("w", encoding="utf-8") as file:
            file.write(text)
        return
    with replace_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
