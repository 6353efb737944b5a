"""How long work tells what it is doing. The lab calls these; who shows them, and how, is the caller's business."""

from __future__ import annotations

from typing import Literal, Protocol


class Progress(Protocol):
    """Told by an experiment as it goes."""

    def preparing(self, what: str) -> None:
        """Set-up that may take a while: an environment being installed, a lock being waited for."""

    def begin(self, steps: int) -> None:
        """The number of steps of the measurement is known."""

    def step(self, what: str) -> None:
        """The next step starts."""

    def note(self, text: str) -> None:
        """Something that the user should know and that is no failure."""

    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None:
        """A figure was measured: ``row`` among others of its ``group``. For looking on; the Run has it all."""


class Silent:
    """Tells nobody."""

    def preparing(self, what: str) -> None: ...
    def begin(self, steps: int) -> None: ...
    def step(self, what: str) -> None: ...
    def note(self, text: str) -> None: ...
    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None: ...
