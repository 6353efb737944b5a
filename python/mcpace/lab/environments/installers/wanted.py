"""What an installer is asked for, and what it offers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcpace.lab.adapters.adapter import Adapter, Role
from mcpace.lab.environments.releases import Say


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


@dataclass(frozen=True)
class Installed:
    """What was installed."""

    versions: dict[str, str]
    """By name."""
    dependencies_as_of: str | None = None
    """The day that the dependencies are of, where that isn't their release's time."""


class Installer(Protocol):
    """One kind of installing. All raise `EnvironmentProblem` with one sentence."""

    cached: bool
    """Whether a finished folder stands for good. Else its tool goes through it each time, and knows what is fresh."""

    def recipe(self, wanted: Wanted) -> list[object]:
        """Everything that makes one environment differ from another, as JSON; the platform aside."""
        ...

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        """Fills an empty folder, which is moved afterwards."""
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
