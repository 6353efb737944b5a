"""Live view of a load on a terminal: users or rate, calls a second, latencies, errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from mcpace.report.model.load import LoadSecond
from mcpace.report.words.quantities import clean, count, duration, figure

BARS = " ▁▂▃▄▅▆▇█"
HISTORY = 48
"""Number of seconds that the bars show."""
BUSY = 0.9
"""Busy share from which the generator is shown as the limit."""


@contextmanager
def show_screen() -> Iterator[Screen]:
    """Shows the live view on stderr during the ``with`` block."""
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        yield Screen(live)


class Screen:
    """Lines on the terminal that are rewritten each second."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._planned_s = 0.0
        self._errors = 0
        self._rates: list[int] = []

    def preparing(self, what: str) -> None:
        """Shows set-up."""
        self._live.update(Text(clean(what)), refresh=True)

    def note(self, text: str) -> None:
        """Prints a permanent line above the live view."""
        self._live.console.print(f"mcpace: {escape(clean(text))}", highlight=False, soft_wrap=True)

    def begin(self, planned_s: float) -> None:
        """The load begins."""
        self._planned_s = planned_s
        self._live.update(Text(f"load for {duration(planned_s)}"), refresh=True)

    def second(self, second: LoadSecond) -> None:
        """Shows another second."""
        self._errors += second.errors
        self._rates = [*self._rates, second.ok][-HISTORY:]
        self._live.update(self._lines(second), refresh=True)

    def _lines(self, second: LoadSecond) -> Text:
        reached = min(second.at_s + 1, self._planned_s)
        lines = Text(f"{reached:.0f} of {self._planned_s:.0f} s", style="bold")
        lines.append(" warm-up" if second.warm_up else "", style="yellow")
        lines.append(f" · {count(second.users, 'user')}", style="")
        lines.append(f" · {figure(second.ok)} calls/s", style="")
        if second.p50_s is not None and second.p99_s is not None:
            lines.append(f" · p50 {duration(second.p50_s)} · p99 {duration(second.p99_s)}")
        lines.append(f" · {count(self._errors, 'error')}", style="red" if self._errors else "")
        if second.engine_busy >= BUSY:
            lines.append(" · generator-limited", style="bold yellow")
        most = max(self._rates, default=0) or 1
        lines.append("\n" + "".join(BARS[-(-rate * (len(BARS) - 1) // most)] for rate in self._rates), style="cyan")
        return lines
