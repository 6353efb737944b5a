"""Who is told how a load goes: a terminal each second, anything else notes only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcpace.cli.notes import inform, is_quiet
from mcpace.lab.load.experiment import Watcher

if TYPE_CHECKING:
    from mcpace.report.model.load import LoadSecond


class Notes:
    """Tells notes and nothing else."""

    def preparing(self, what: str) -> None: ...
    def begin(self, planned_s: float) -> None: ...
    def second(self, second: LoadSecond) -> None: ...
    def note(self, text: str) -> None:
        """One line on stderr."""
        inform(text)


@contextmanager
def shown() -> Iterator[Watcher]:
    """The view for as long as the load lasts."""
    if is_quiet() or sys.stderr is None or not sys.stderr.isatty():
        yield Notes()
        return
    # Loaded for terminals alone: it takes as long as all else before the first request.
    from mcpace.cli.load_screen import screen

    with screen() as seen:
        yield seen
