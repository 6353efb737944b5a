"""The parts of a Run that a comparison of two servers' listings adds.

Design constraint: data only. Names and values come from servers; sentences are made in
:mod:`mcpace.report.words.drift`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from mcpace.report.model.base import Model, Whole

Level = Literal["breaking", "widening", "wording"]
"""``breaking``: a call or a reader of before may fail. ``widening``: all of these work, and the server offers more.
``wording``: only words that no validation reads."""
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels, the gravest first."""
Item = Literal["server", "tool"]
Part = Literal["listing", "input", "output", "hints", "execution", "result", "text"]
"""Part of an item that changed: the item itself, one of its schemas, its annotations, the ways to run it, the results
of its calls, or its words."""
Kind = Literal["removed", "added", "required", "optional", "narrower", "wider", "changed"]
"""``required`` and ``optional``: a member of a schema became so. ``changed``: neither direction is proved, or words."""


class Listing(Model):
    """A server's description of itself. Its JSON is kept as the server sent it; it is data of a peer."""

    server: str = ""
    version: str = ""
    revision: str = ""
    """Negotiated revision of the protocol."""
    tools: list[dict[str, Any]]


class ListingChange(Model):
    """One difference between two listings."""

    level: Level
    item: Item
    name: str = ""
    """Name of the tool."""
    part: Part
    kind: Kind
    place: str = ""
    """Place in the schema, such as ``filter.tags[]``; for words, also the keyword."""
    before: str = ""
    after: str = ""


class ListingSize(Model):
    """Size of one tool's description as JSON, on both sides."""

    name: str
    base_bytes: Whole | None = None
    now_bytes: Whole | None = None
    """Absent on the side that lacks the tool."""
    base_tokens: Whole | None = None
    now_tokens: Whole | None = None
    """Absent where no tokenizer counted them."""


class Drift(Model):
    """The comparison of two listings."""

    base_target: str
    target: str
    base_server: str = ""
    """Name and version of the server."""
    now_server: str = ""
    changes: list[ListingChange] = []
    left_out: Whole = 0
    """Number of further changes, of the lowest levels."""
    sizes: list[ListingSize] = []
    """The tools whose size changed. The whole listing has an empty name, and comes first."""

    def refused(self, limit: Level | None) -> list[ListingChange]:
        """The changes of the level ``limit`` and of graver levels; none without a limit."""
        levels = LEVELS[: LEVELS.index(limit) + 1] if limit is not None else ()
        return [change for change in self.changes if change.level in levels]
