"""Progress of a load: a live view on a terminal, notes only elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcpace.cli.notes import inform, is_quiet
from mcpace.lab.load.run_load import Watcher

if TYPE_CHECKING:
    from mcpace.report.model.load import LoadSecond


class Notes:
    """Watcher that prints notes only."""

    def preparing(self, what: str) -> None: ...
    def begin(self, planned_s: float) -> None: ...
    def second(self, second: LoadSecond) -> None: ...
    def note(self, text: str) -> None:
        """One line on stderr."""
        inform(text)


@contextmanager
def show_load() -> Iterator[Watcher]:
    """Yields the watcher that shows a load's progress."""
    if is_quiet() or sys.stderr is None or not sys.stderr.isatty():
        yield Notes()
        return
    # Imported for terminals only: the import takes as long as everything else before the first request.
    from mcpace.cli.load_screen import show_screen

    with show_screen() as screen:
        yield screen
