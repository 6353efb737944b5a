"""Hands a finished run to the user: saved first, then shown, then the exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import typer
from rich.console import Console

from mcpace.lab.errors import UsageProblem
from mcpace.report import html, terminal, words
from mcpace.report.run import Run

DONE, HIT, UNREACHABLE, INTERRUPTED = 0, 1, 3, 130


def deliver(
    run: Run, *, as_json: bool, out: Path | None, page: Path | None = None, fail_on: list[str] | None = None
) -> None:
    """Saves and shows ``run`` and leaves with the exit code that it deserves."""
    if out is None and run.partial and not as_json:
        out = Path(f"mcpace-{run.kind}-{time.strftime('%Y%m%d-%H%M%S')}.partial.json")
    saved = _save(out, run.to_json()) if out is not None else None
    show(run, as_json=as_json, page=page)
    if saved is not None:
        print(f"mcpace: run {'so far ' if run.partial else ''}saved in {saved}", file=sys.stderr)
    code = _exit_code(run, fail_on or [])
    if code:
        raise typer.Exit(code)


def show(run: Run, *, as_json: bool, page: Path | None) -> None:
    """Prints ``run`` for people or as JSON, and writes its page."""
    if as_json:
        print(run.to_json(), flush=True)
    else:
        terminal.print_run(run, Console())
    if page is not None:
        written = _save(page, html.render(run))
        print(f"mcpace: report in {written}", file=sys.stderr)


def check_codes(codes: list[str]) -> None:
    """Refuses ``--fail-on`` codes that no finding has.

    Raises :class:`UsageProblem`.
    """
    for code in codes:
        if code != "any" and code not in words.CODES:
            raise UsageProblem(f"--fail-on: no finding is called {code!r}; there are {', '.join(words.CODES)}, and any")


def _exit_code(run: Run, fail_on: list[str]) -> int:
    if run.partial:
        return INTERRUPTED
    found = {finding.code for case in run.cases for finding in case.findings}
    if found & set(fail_on) or (found and "any" in fail_on):
        return HIT
    if run.cases and not any(case.trials_s or case.unsupported for case in run.cases):
        return UNREACHABLE
    return DONE


def _save(path: Path, text: str) -> Path:
    """Writes whole or not at all. Where the place won't take it, a temporary folder does: nothing measured is lost."""
    try:
        return _replace(path, text)
    except OSError as error:
        spare = Path(tempfile.gettempdir()) / f"mcpace-{os.getpid()}-{path.name}"
        print(f"mcpace: could not write {path} ({error.strerror}); trying {spare}", file=sys.stderr)
    try:
        return _replace(spare, text)
    except OSError as error:
        print(f"mcpace: could not write {spare} either ({error.strerror}); it follows on stdout", file=sys.stderr)
        print(text, flush=True)
        raise typer.Exit(UNREACHABLE) from error


def _replace(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
