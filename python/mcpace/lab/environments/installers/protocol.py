"""Types of installers: the release to install, the result, and the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcpace.lab.adapters.adapter import Adapter, Role
from mcpace.lab.environments.releases import Say


@dataclass(frozen=True)
class InstallRequest:
    """A release to install for one of an adapter's programs."""

    adapter: Adapter
    version: str
    role: Role = Role.CLIENT
    workload: str | None = None
    """Workload that the server is measured under, where it is known."""

    @property
    def release_label(self) -> str:
        """Name of the release, as users type it."""
        return f"{self.adapter.name}@{self.version}"

    @property
    def extra_requirements(self) -> tuple[str, ...]:
        """Requirements to install in addition to the package."""
        server = self.adapter.server if self.role is Role.SERVER else None
        if server is None:
            return self.adapter.install.also
        return (*self.adapter.install.also, *server.also, *server.also_for.get(self.workload or "", ()))


@dataclass(frozen=True)
class Installed:
    """Result of an installation."""

    versions: dict[str, str]
    """Versions of the installed packages, by name."""
    dependencies_as_of: str | None = None
    """Date of the dependencies, where they aren't as of the release's time."""


class Installer(Protocol):
    """Installer of one kind. All methods raise `EnvironmentProblem` with one sentence."""

    cached: bool
    """Whether a finished folder is final. Otherwise its tool runs each time and detects changes."""

    def recipe(self, request: InstallRequest) -> list[object]:
        """All inputs of the environment except for the platform, as JSON values."""
        ...

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        """Fills an empty folder, which is renamed afterwards."""
        ...

    def command_values(self, folder: Path) -> dict[str, str]:
        """Values of the placeholders in adapter.toml's commands."""
        ...

    def is_usable(self, folder: Path) -> bool:
        """Whether everything that a finished folder needs from outside still exists."""
        ...

    def runtime_versions(self) -> dict[str, str]:
        """Versions of runtimes outside the folder, by name."""
        ...
