"""The interface of what instruments the programs of one language runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mcpace import _core

Variables = Sequence[tuple[str, str]]
"""Environment variables of a process that is to be started: names and values."""


class Instrumentation(Protocol):
    """Instruments the programs of one runtime by environment variables, and collects what they leave."""

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns variables for a process, in addition to ``own``, which the user gave.

        A variable that the user has set already keeps its effect: the new value contains the old one.
        """
        ...

    def close(self) -> None:
        """Ends the collection. The instrumented processes have ended. Closing twice is harmless."""
        ...

    def add_to(self, recording: _core.Recording) -> None:
        """Adds what was collected, and the sources that gave nothing, each with the reason."""
        ...
