"""The registered components of one kind, such as all tools, in the order of their registration.

Design constraint: independent of the kind; the functions that differ between kinds are parameters.
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
class ComponentList(Generic[EntryT]):
    """The registered components of one kind. Once bound, each change is passed on to the compiled part."""

    kind: str
    """The kind's name, for messages."""
    key: Callable[[EntryT], str]
    """The function that gives an entry's key."""
    register: Callable[[_core.Server, EntryT], None]
    """Registers an entry with the compiled part."""
    unregister: Callable[[_core.Server, str], object]
    """Removes an entry from the compiled part."""
    warns: bool = True
    """Whether ignoring a second entry of the same key is logged."""
    replaces: bool = False
    """Whether a second entry of the same key replaces the first."""
    entries: dict[str, EntryT] = field(default_factory=dict)
    core: _core.Server | None = None
    """The compiled part's registry, once the server is used."""

    def add(self, entry: EntryT) -> EntryT:
        """Adds an entry. Returns the entry that is registered afterwards, which may be an older one of the same key."""
        key = self.key(entry)
        if key in self.entries and not self.replaces:
            if self.warns:
                logger.warning("%s already exists: %s; the first one stays", self.kind, key)
            return self.entries[key]
        if self.core is not None:
            if key in self.entries:
                self.unregister(self.core, key)
            self.register(self.core, entry)
        self.entries[key] = entry
        return entry

    def remove(self, key: str) -> bool:
        """Removes an entry. Returns whether there was one."""
        if self.entries.pop(key, None) is None:
            return False
        if self.core is not None:
            self.unregister(self.core, key)
        return True

    def bind(self, core: _core.Server) -> None:
        """Registers all entries with the compiled part. Later changes are passed on to it."""
        for entry in self.entries.values():
            self.register(core, entry)
        self.core = core


def key_by_name(entry: Any) -> str:
    """The key of an entry that has a name."""
    name: str = entry.name
    return name
