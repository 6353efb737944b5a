"""Data type of a release, common to all registries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.version import Version


@dataclass(frozen=True)
class Release:
    version: str
    """Version as the registry spells it: `1.12.0`, `2.0.0-beta.1`."""
    uploaded: datetime | None
    """Upload time of the first file, UTC; `None` where the registry doesn't give it."""
    yanked: bool = False

    @property
    def parsed_version(self) -> Version:
        """Version as a comparable number: strings don't sort like versions."""
        return Version(self.version)

    @property
    def is_prerelease(self) -> bool:
        return self.parsed_version.is_prerelease

    @property
    def is_stable(self) -> bool:
        return not (self.yanked or self.is_prerelease)


def parse_time(text: str) -> datetime:
    """Parses a registry's time; without a time zone it is UTC. Raises ``ValueError`` for invalid text."""
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
