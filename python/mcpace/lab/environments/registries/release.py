"""A release, as every registry can say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from packaging.version import Version


@dataclass(frozen=True)
class Release:
    version: str
    """As its registry spells it: `1.12.0`, `2.0.0-beta.1`."""
    uploaded: datetime | None
    """When the first of its files was uploaded, UTC; `None` where its registry doesn't say and nobody asks."""
    yanked: bool = False

    @property
    def number(self) -> Version:
        """For comparing: strings don't sort as versions do."""
        return Version(self.version)

    @property
    def prerelease(self) -> bool:
        return self.number.is_prerelease

    @property
    def stable(self) -> bool:
        return not (self.yanked or self.prerelease)


def moment(text: str) -> datetime:
    """A time as registries write it, which is UTC where it doesn't say. Raises ``ValueError`` where it is none."""
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
