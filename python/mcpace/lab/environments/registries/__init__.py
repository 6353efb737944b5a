"""Registries of releases, one for each kind of package, read with the configuration of the kind's own tool.

A registry lists releases. Module `releases` selects among them and caches the lists.
"""

from __future__ import annotations

from typing import Protocol

from packaging.version import Version

from mcpace.lab.environments.registries.cargo import Cargo
from mcpace.lab.environments.registries.go import Go
from mcpace.lab.environments.registries.npm import Npm
from mcpace.lab.environments.registries.pypi import Pypi
from mcpace.lab.environments.registries.release import Release

__all__ = ["REGISTRIES", "Registry", "Release"]


class Registry(Protocol):
    """Registry of one kind. All methods raise `ReleasesProblem` with one sentence."""

    def index_address(self) -> str:
        """Address that identifies the configured registry, for the cache. It may contain credentials."""
        ...

    def listed_releases(self, package: str, where: str) -> list[Release]:
        """All listed releases, oldest version first. `where` is the result of `index_address()`."""
        ...

    def find_unlisted(self, package: str, number: Version) -> Release | None:
        """Finds a release that exists but isn't listed."""
        ...


REGISTRIES: dict[str, Registry] = {"pypi": Pypi(), "npm": Npm(), "go": Go(), "cargo": Cargo()}
"""Registries by the name of the kind in adapter.toml."""
