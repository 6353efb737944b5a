"""Progress on a terminal: a bar with the remaining time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from mcpace.report.words.quantities import clean


class TerminalProgress:
    """A :class:`mcpace.lab.progress.Progress` on a terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("", total=None)
        self._started = False

    def preparing(self, what: str) -> None:
        """Shows set-up without a bar."""
        self._bar.update(self._task, description=f"preparing {escape(clean(what))}")

    def begin(self, steps: int) -> None:
        """Starts or restarts the bar."""
        self._bar.reset(self._task, total=steps)
        self._started = False

    def step(self, what: str) -> None:
        """Shows the next step, which ends the previous one."""
        self._bar.update(self._task, advance=1 if self._started else 0, description=escape(clean(what)))
        self._started = True

    def note(self, text: str) -> None:
        """Prints a permanent line above the bar."""
        self._bar.console.print(f"mcpace: {escape(clean(text))}", highlight=False, soft_wrap=True)

    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None:
        """Ignores samples: the line has no room for them."""


@contextmanager
def show_bar() -> Iterator[TerminalProgress]:
    """Shows the bar during the ``with`` block; the line is removed at its end."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield TerminalProgress(bar)
