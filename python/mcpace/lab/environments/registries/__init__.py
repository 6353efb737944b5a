"""Where releases are published: one registry for each kind of package, asked as its own tool is configured.

A registry says what there is. Which release is meant, and for how long an answer stands, is `releases`'s business.
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
    """All raise `ReleasesProblem` with one sentence."""

    def where(self) -> str:
        """What tells one registry of this kind from another, for the cache. May hold credentials."""
        ...

    def releases(self, package: str, where: str) -> list[Release]:
        """All that it lists, oldest version first. `where` is what `where` said."""
        ...

    def unlisted(self, package: str, number: Version) -> Release | None:
        """A release that it has and doesn't list."""
        ...


REGISTRIES: dict[str, Registry] = {"pypi": Pypi(), "npm": Npm(), "go": Go(), "cargo": Cargo()}
"""By the word for the kind in adapter.toml."""
