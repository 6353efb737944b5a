"""Progress on stderr: a bar with the remaining time on a terminal, notes only elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mcpace.cli.notes import inform, is_quiet
from mcpace.lab import progress


class Notes(progress.Silent):
    """Progress that prints notes only."""

    def note(self, text: str) -> None:
        """One line on stderr."""
        inform(text)


@contextmanager
def show_progress() -> Iterator[progress.Progress]:
    """Shows progress during the ``with`` block."""
    if is_quiet() or sys.stderr is None or not sys.stderr.isatty():
        yield Notes()
        return
    # Imported for terminals only: the bar's library takes time to load.
    from mcpace.cli.progress_bar import show_bar

    with show_bar() as bar:
        yield bar
