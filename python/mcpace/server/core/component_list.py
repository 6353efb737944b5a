"""One sort of thing that a server has: its entries in the order of their registration, and who is told of changes.

Design constraint: knows neither tools nor resources; what differs between the sorts is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcpace.server.errors import logger

if TYPE_CHECKING:
    from mcpace import _core

EntryT = TypeVar("EntryT")


@dataclass(slots=True)
class Shelf(Generic[EntryT]):
    """See the module."""

    kind: str
    """For messages."""
    key: Callable[[EntryT], str]
    """What names an entry."""
    tell: Callable[[_core.Server, EntryT], None]
    """Registers an entry with the compiled part."""
    untell: Callable[[_core.Server, str], object]
    """Takes it away there."""
    warns: bool = True
    """Whether the second of a name is said to be passed over."""
    replaces: bool = False
    """Whether the second of a name takes the place of the first."""
    entries: dict[str, EntryT] = field(default_factory=dict)
    core: _core.Server | None = None
    """The compiled part, once the server is being served."""

    def add(self, entry: EntryT) -> EntryT:
        """Adds an entry; returns the one that stays, where there was one of its name."""
        key = self.key(entry)
        if key in self.entries and not self.replaces:
            if self.warns:
                logger.warning("%s already exists: %s; the first one stays", self.kind, key)
            return self.entries[key]
        if self.core is not None:
            if key in self.entries:
                self.untell(self.core, key)
            self.tell(self.core, entry)
        self.entries[key] = entry
        return entry

    def remove(self, key: str) -> bool:
        """Takes an entry away; tells whether there was one."""
        if self.entries.pop(key, None) is None:
            return False
        if self.core is not None:
            self.untell(self.core, key)
        return True

    def bind(self, core: _core.Server) -> None:
        """Tells the compiled part all that there is; from here on, it is told of each change."""
        for entry in self.entries.values():
            self.tell(core, entry)
        self.core = core


def named(entry: Any) -> str:
    """The key of what has a name."""
    name: str = entry.name
    return name
