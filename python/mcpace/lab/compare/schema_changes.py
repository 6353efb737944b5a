"""Changes between two releases of one JSON Schema, each with its place and its effect on callers.

The schemas are walked side by side. Each difference is judged by a proof of inclusion
(:mod:`mcpace.lab.compare.schema_inclusion`). Arguments flow from the caller to the server, so a narrower schema breaks
calls. Structured results flow from the server to the reader, so a wider schema breaks readers. A member that is no
longer listed is breaking in both: its callers and readers relied on it. A change that is not breaking is therefore
proved: every instance of the sender's schema satisfies the receiver's schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpace.lab.compare.schema_inclusion import (
    ASSERTIONS,
    Limits,
    Schema,
    are_equal,
    is_conjunction_included,
    is_included,
    listed_names,
    members_of,
    parts_of,
)
from mcpace.report.model.drift import Kind, Level, ListingChange

Flow = Literal["input", "output"]

MOST_DEPTH = 20
TEXTS = ("title", "description", "default", "examples", "deprecated")
SIMPLE = frozenset(
    {
        "const",
        "contentEncoding",
        "contentMediaType",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "type",
        "uniqueItems",
    }
)
"""Keywords without subschemas."""
STRUCTURE = frozenset({"additionalProperties", "items", "properties", "required"})
"""Keywords whose changes are shown at the places that they describe."""
LONGEST = 160
"""Characters of a shown value."""
MOST_SHOWN = 8
"""Values of an ``enum`` that are shown."""


def schema_changes(base: Any, now: Any, tool: str, flow: Flow, limits: Limits) -> list[ListingChange]:
    """The changes from the schema ``base`` to the schema ``now`` of a tool's arguments or structured results."""
    base, now = _listing_members(base), _listing_members(now)
    old, new = Schema(base, base), Schema(now, now)
    walk = _Walk(tool, flow, limits)
    walk.compare(old, new, "", 0)
    found = walk.found
    sent, received = (old, new) if flow == "input" else (new, old)
    if not any(one.level == "breaking" for one in found) and not is_included(sent, received, limits):
        # The walk stopped at its limits, or keywords depend on each other at several places.
        found.append(walk.change("breaking", "changed", "", summarize(old), summarize(new)))
    return found


@dataclass
class _Walk:
    tool: str
    flow: Flow
    limits: Limits
    found: list[ListingChange] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of schemas that were compared: a schema may refer to itself."""

    def change(self, level: Level, kind: Kind, place: str, before: str = "", after: str = "") -> ListingChange:
        return ListingChange(
            level=level,
            item="tool",
            name=self.tool,
            part=self.flow if level != "wording" else "text",
            kind=kind,
            place=place,
            before=before,
            after=after,
        )

    def add(self, level: Level, kind: Kind, place: str, before: str = "", after: str = "") -> None:
        self.found.append(self.change(level, kind, place, before, after))

    def compare(self, base: Schema, now: Schema, place: str, depth: int) -> None:
        """Adds the changes at one place of the schemas and below it."""
        old, new = _single_part(base), _single_part(now)
        self._compare_texts(_texts(base, old), _texts(now, new), place)
        key = (id((old or base).node), id((new or now).node))
        if key in self.seen:
            return
        self.seen.add(key)
        if old is None or new is None or depth > MOST_DEPTH or not self.limits.take_step():
            self._compare_whole(base, now, place)
            return
        inner = _without_null(old), _without_null(new)
        if inner[0] is not None or inner[1] is not None:
            self._compare_optional(old, new, inner, place, depth)
            return
        others = [one.with_node(_keywords(one, ASSERTIONS - STRUCTURE - SIMPLE)) for one in (old, new)]
        if not are_equal(others[0], others[1], self.limits):
            self._compare_whole(old, new, place)
            return
        shallow = [one.with_node(_keywords(one, ASSERTIONS - STRUCTURE)) for one in (old, new)]
        self._compare_whole(shallow[0], shallow[1], place)
        self._compare_members(old, new, place, depth)
        self._compare_nested(old, new, "items", place, depth)
        self._compare_nested(old, new, "additionalProperties", place, depth)

    def _compare_optional(
        self, old: Schema, new: Schema, inner: tuple[Schema | None, Schema | None], place: str, depth: int
    ) -> None:
        """Compares schemas of which one or both have ``null`` as an alternative."""
        nulls = [is_included(one.with_node({"type": "null"}), one, self.limits) for one in (old, new)]
        if nulls[0] == nulls[1] and None in inner:
            self._compare_whole(old, new, place)
            return
        if nulls[0] != nulls[1]:
            kind: Kind = "wider" if nulls[1] else "narrower"
            breaks = "narrower" if self.flow == "input" else "wider"
            level: Level = "breaking" if kind == breaks else "widening"
            self.add(level, kind, place, summarize(old), summarize(new))
        self.compare(inner[0] or old, inner[1] or new, place, depth + 1)

    def _compare_whole(self, base: Schema, now: Schema, place: str) -> None:
        """Adds one change where the schemas differ, without a look at their subschemas."""
        if are_equal(base, now, self.limits):
            return
        is_narrower = not is_included(base, now, self.limits)
        is_wider = not is_included(now, base, self.limits)
        if not is_narrower and not is_wider:
            return
        level: Level = "breaking" if (is_narrower if self.flow == "input" else is_wider) else "widening"
        kind: Kind = "changed" if is_narrower and is_wider else "narrower" if is_narrower else "wider"
        before, after = summarize(base), summarize(now)
        if before == after:
            before, after = shorten(base.node), shorten(now.node)
        self.add(level, kind, place, before, after)

    def _compare_members(self, old: Schema, new: Schema, place: str, depth: int) -> None:
        before, after = _dict(old.node.get("properties")), _dict(new.node.get("properties"))
        was_required, is_required = _names(old.node.get("required")), _names(new.node.get("required"))
        for name, inner in before.items():
            where = f"{place}.{name}" if place else name
            if name not in after:
                self.add("breaking", "removed", where, summarize(old.at(inner)))
                continue
            if (name in was_required) != (name in is_required):
                kind: Kind = "required" if name in is_required else "optional"
                breaks = "required" if self.flow == "input" else "optional"
                self.add("breaking" if kind == breaks else "widening", kind, where)
            self.compare(old.at(inner), new.at(after[name]), where, depth + 1)
        for name in [one for one in after if one not in before]:
            where = f"{place}.{name}" if place else name
            words = summarize(new.at(after[name]))
            if self.flow == "input" and name in is_required:
                self.add("breaking", "required", where, "", words)
            else:
                self.add("widening" if self._permits_member(old, new, name) else "breaking", "added", where, "", words)
        for name in sorted((was_required ^ is_required) - before.keys() - after.keys()):
            # Required, and not described.
            kind = "required" if name in is_required else "optional"
            breaks = "required" if self.flow == "input" else "optional"
            self.add("breaking" if kind == breaks else "widening", kind, f"{place}.{name}" if place else name)

    def _permits_member(self, old: Schema, new: Schema, name: str) -> bool:
        """Whether the new member ``name`` is compatible with objects of before."""
        inner = new.at(new.node["properties"][name])
        if self.flow == "output":
            return is_conjunction_included([inner], _conjunction(old, name), self.limits)
        names = listed_names([old])
        return names is not None or is_conjunction_included(members_of([old], name), inner, self.limits)

    def _compare_nested(self, old: Schema, new: Schema, key: str, place: str, depth: int) -> None:
        """Compares the items of arrays, or the unlisted members of objects."""
        if key not in old.node and key not in new.node:
            return
        before, after = old.node.get(key, True), new.node.get(key, True)
        where = f"{place}[]" if key == "items" else f"{place}.*" if place else "*"
        if isinstance(before, dict) and isinstance(after, dict):
            self.compare(old.at(before), new.at(after), where, depth + 1)
            return
        number = len(self.found)
        type_ = "array" if key == "items" else "object"
        self._compare_whole(
            old.with_node({"type": type_, key: before}), new.with_node({"type": type_, key: after}), where
        )
        if key == "additionalProperties" and isinstance(before, bool) and isinstance(after, bool):
            for change in self.found[number:]:
                change.before = change.after = ""  # The kind says everything.

    def _compare_texts(self, old: dict[str, Any], new: dict[str, Any], place: str) -> None:
        for key in TEXTS:
            before, after = old.get(key), new.get(key)
            if _json(before) != _json(after):
                self.add("wording", "changed", f"{place} {key}".strip(), shorten(before), shorten(after))


def _listing_members(schema: Any) -> Any:
    """The schema as one of an object that lists its members. Arguments and structured results are always objects, and
    one without ``properties`` has no members, as for tools without arguments."""
    return {"type": "object", "properties": {}, **schema} if isinstance(schema, dict) else schema


def summarize(schema: Schema) -> str:
    """A schema in a few words: ``string``, ``integer ≥ 0``, ``"a", "b" or "c"``, ``string or null``."""
    return _cut(_summary(schema, 0))


def shorten(value: Any) -> str:
    """A value as text; empty for an absent one."""
    if value is None:
        return ""
    return _cut(value if isinstance(value, str) else _json(value))


def _summary(schema: Schema, depth: int) -> str:
    part = _single_part(schema)
    if part is None or depth > 3:
        return "nothing" if schema.node is False else "anything" if schema.node is True else _json(schema.node)
    node = part.node
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list) and len(node.keys() & ASSERTIONS) == 1:
            return _join_words([_summary(part.at(one), depth + 1) for one in node[key][:MOST_SHOWN]])
    values = node.get("enum") if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else None
    if values is not None:
        more = [f"{len(values) - MOST_SHOWN} more"] if len(values) > MOST_SHOWN else []
        return _join_words([*(_json(value) for value in values[:MOST_SHOWN]), *more])
    types = node.get("type")
    words = _join_words([str(one) for one in types]) if isinstance(types, list) else str(types or "anything")
    if types == "array" and isinstance(node.get("items"), dict):
        words = f"array of {_summary(part.at(node['items']), depth + 1)}"
    rest = [
        f"{SIGNS.get(key, key)} {_json(node[key])}" for key in sorted(node.keys() & ASSERTIONS - STRUCTURE - {"type"})
    ]
    if node.get("additionalProperties") is False:
        rest.append("without other members")
    return ", ".join([words, *rest])


SIGNS = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}


def _single_part(schema: Schema) -> Schema | None:
    """The schema without references, where one part has all of its assertions; ``None`` elsewhere."""
    parts = parts_of(schema)
    if not parts:
        return Schema({}, schema.root)
    return parts[0] if len(parts) == 1 and isinstance(parts[0].node, dict) else None


def _without_null(schema: Schema | None) -> Schema | None:
    """The schema besides ``null``, where there are just these two alternatives."""
    for key in ("anyOf", "oneOf"):
        branches = schema.node.get(key) if schema is not None else None
        if schema is not None and isinstance(branches, list) and len(branches) == 2 and len(_assertions(schema)) == 1:
            others = [one for one in branches if not (isinstance(one, dict) and one.get("type") == "null")]
            if len(others) == 1 and isinstance(others[0], dict):
                return schema.at(others[0])
    return None


def _texts(outer: Schema, inner: Schema | None) -> dict[str, Any]:
    """The texts of a schema; those beside a reference stand before those of the schema that is referred to."""
    found: dict[str, Any] = {}
    for one in (outer, inner):
        if one is not None and isinstance(one.node, dict):
            found = {key: one.node[key] for key in TEXTS if key in one.node} | found
    return found


def _conjunction(old: Schema, name: str) -> Schema:
    inner = members_of([old], name)
    return inner[0] if inner else Schema(True, old.root)


def _assertions(schema: Schema) -> set[str]:
    return set(schema.node.keys() & ASSERTIONS)


def _keywords(schema: Schema, keys: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: value for key, value in schema.node.items() if key in keys}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
