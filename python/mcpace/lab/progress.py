"""Progress events of long work. The lab emits the events; the caller decides whether and how to show them."""

from __future__ import annotations

from typing import Literal, Protocol


class Progress(Protocol):
    """Receiver of an experiment's progress events."""

    def preparing(self, what: str) -> None:
        """Set-up begins that may take a while: installing an environment, waiting for a lock."""

    def begin(self, steps: int) -> None:
        """The number of steps of the measurement is known."""

    def step(self, what: str) -> None:
        """The next step starts."""

    def note(self, text: str) -> None:
        """Reports something that the user should know and that is not a failure."""

    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None:
        """A value was measured for one ``row`` of a ``group``. For live display only; the Run has all values."""


class Silent:
    """Progress that discards every event."""

    def preparing(self, what: str) -> None: ...
    def begin(self, steps: int) -> None: ...
    def step(self, what: str) -> None: ...
    def note(self, text: str) -> None: ...
    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None: ...
