"""What an installer is asked for, and what it offers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcpace.lab.adapter import Adapter, Role
from mcpace.lab.releases import Say

AS_OF = "dependencies as of"
"""Among an environment's versions where its dependencies aren't of its release's time: their day. No package's name."""


@dataclass(frozen=True)
class Wanted:
    """One release, for one of an adapter's programs."""

    adapter: Adapter
    version: str
    role: Role = Role.CLIENT

    @property
    def label(self) -> str:
        """As users type it."""
        return f"{self.adapter.name}@{self.version}"

    @property
    def also(self) -> tuple[str, ...]:
        """What is installed beside the package."""
        of_role = self.adapter.server.also if self.role is Role.SERVER and self.adapter.server is not None else ()
        return (*self.adapter.install.also, *of_role)


class Installer(Protocol):
    """One kind of installing. All raise `EnvironmentProblem` with one sentence."""

    cached: bool
    """Whether a finished folder stands for good. Else its tool goes through it each time, and knows what is fresh."""

    def recipe(self, wanted: Wanted) -> list[object]:
        """Everything that makes one environment differ from another, as JSON; the platform aside."""
        ...

    def build(self, wanted: Wanted, folder: Path, say: Say) -> dict[str, str]:
        """Fills an empty folder, which is moved afterwards. Says what was installed: versions by name."""
        ...

    def places(self, folder: Path) -> dict[str, str]:
        """What stands for a place in adapter.toml's commands."""
        ...

    def stands(self, folder: Path) -> bool:
        """Whether what a finished folder needs from outside is still there."""
        ...

    def runs_on(self) -> dict[str, str]:
        """What isn't in the folder and has a version of its own: a runtime, by name."""
        ...
