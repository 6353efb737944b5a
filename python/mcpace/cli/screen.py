"""The console on which runs are shown."""

from __future__ import annotations

from rich.console import Console


class Screen(Console):
    """Console that raises :class:`BrokenPipeError`, where Rich would exit with code 1."""

    def on_broken_pipe(self) -> None:
        """Raises the :class:`BrokenPipeError` that is being handled."""
        raise
