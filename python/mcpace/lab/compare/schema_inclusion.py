"""Inclusion of JSON Schemas: whether one schema accepts every instance that another schema accepts.

The proof is sound and incomplete: a proved inclusion holds, and an inclusion that is not proved may hold. The keywords
are those of JSON Schema 2020-12; ``items`` as an array is that of draft 7. ``format`` counts as an assertion, because
SDKs check it.

Objects of the included schema are read as their author or caller reads them: where a schema lists members and does not
say that others are accepted (``additionalProperties``, ``patternProperties``), an instance has the listed members only.
In the terms of JSON Schema, the included schema has ``unevaluatedProperties: false`` at each object that lists members.
A new optional member would otherwise reject instances in which the member had any other type.

A schema comes from a peer. Therefore no pattern is executed, references are resolved inside the document only, and the
number of steps and the depth are limited. A proof that exceeds a limit fails.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

MOST_STEPS = 300_000
"""Steps of all proofs that share one :class:`Limits`. The listings of real servers take some hundred steps a tool."""
LIMIT_S = 20.0
"""Time of these steps: schemas with very long lists have slow steps."""
MOST_PAIRS = 10_000
"""Pairs of values that a proof compares one by one."""
MOST_DEPTH = 40
"""Nested subschemas that a proof follows."""

SCHEMAS = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema."""
LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
"""Keywords whose value is an array of schemas."""
MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value is an object of schemas."""
SETS = frozenset({"enum", "required", "type"})
"""Keywords whose value is an array without an order."""
CONDITIONS = ("if", "then", "else")
CONTAINS = ("contains", "minContains", "maxContains")
OPAQUE = {
    "$dynamicRef": ("$dynamicRef",),
    "$recursiveRef": ("$recursiveRef",),
    "$ref": ("$ref",),
    "contains": CONTAINS,
    "contentEncoding": ("contentEncoding",),
    "contentMediaType": ("contentMediaType",),
    "contentSchema": ("contentSchema", "contentMediaType"),
    "dependencies": ("dependencies",),
    "dependentRequired": ("dependentRequired",),
    "dependentSchemas": ("dependentSchemas",),
    "format": ("format",),
    "if": CONDITIONS,
    "pattern": ("pattern",),
}
"""Keywords that are implied only by equal keywords, each with the keywords that it depends on."""
REFERENCES = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
WHOLE = frozenset({"unevaluatedItems", "unevaluatedProperties"})
"""Keywords that depend on all other keywords of the schema: only an equal schema implies them."""
ASSERTIONS = (
    SCHEMAS
    | LISTS
    | MAPS
    | SETS
    | set(OPAQUE)
    | {
        "const",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "uniqueItems",
    }
)
"""Keywords that decide whether an instance is accepted. All others are annotations."""

TYPES = {
    "null": {"null"},
    "boolean": {"boolean"},
    "object": {"object"},
    "array": {"array"},
    "string": {"string"},
    "integer": {"integer"},
    "number": {"integer", "fraction"},
}
"""Types of JSON Schema as sets without overlap: a number is an integer or a fraction."""
ALL_TYPES = frozenset().union(*TYPES.values())
APPLIES_TO = {
    "object": {
        "additionalProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "maxProperties",
        "minProperties",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
    },
    "array": {"additionalItems", "contains", "items", "maxItems", "minItems", "prefixItems", "uniqueItems"},
    "string": {"contentEncoding", "contentMediaType", "format", "maxLength", "minLength", "pattern"},
    "integer": {"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
}
"""Keywords that only instances of one type can fail. A fraction is as an integer here."""


@dataclass(frozen=True)
class Schema:
    """A schema, and the document that its references are resolved in."""

    node: Any
    root: Any

    def at(self, node: Any) -> Schema:
        """A subschema. One with an ``$id`` is a document of its own."""
        return Schema(node, node if _is_document(node) else self.root)

    def with_node(self, node: Any) -> Schema:
        """Some of the keywords of this schema, or further ones for the same place."""
        return Schema(node, self.root)


@dataclass
class Limits:
    """Steps that are left to the proofs of one comparison."""

    steps: int = MOST_STEPS
    ends_at: float = field(default_factory=lambda: time.monotonic() + LIMIT_S)

    def take_step(self) -> bool:
        """Takes one step. Returns whether there was one."""
        self.steps -= 1
        return self.steps >= 0 and time.monotonic() < self.ends_at


def is_included(first: Schema, second: Schema, limits: Limits) -> bool:
    """Whether ``second`` is proved to accept every instance that ``first`` accepts."""
    return is_conjunction_included([first], second, limits)


def is_conjunction_included(facts: list[Schema], goal: Schema, limits: Limits) -> bool:
    """Whether ``goal`` is proved to accept every instance that all ``facts`` accept."""
    try:
        return _Proof(limits).is_included(facts, goal, 0)
    except RecursionError:
        return False


def are_equal(first: Schema, second: Schema, limits: Limits) -> bool:
    """Whether both schemas have the same assertions at the same places. Annotations may differ."""
    try:
        return _Equality(limits).are_equal(first, second, 0)
    except RecursionError:
        return False


def resolve_reference(schema: Schema) -> Schema | None:
    """The schema that the ``$ref`` of a schema refers to; ``None`` outside of the document."""
    reference = schema.node.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return None  # an anchor
    node = root = schema.root
    for part in unquote(reference[1:]).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and len(name) < 6 and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
        root = node if _is_document(node) else root
    return Schema(node, root) if isinstance(node, dict | bool) else None


def parts_of(schema: Schema) -> list[Schema]:
    """The schemas that an instance must satisfy all of: ``schema`` without ``allOf`` and ``$ref``, and the schemas that
    these name. A reference that can't be resolved stays in its part.
    """
    parts: list[Schema] = []
    waiting, seen = [schema], set()
    while waiting:
        one = waiting.pop()
        node = one.node
        if not isinstance(node, dict):
            parts.append(one.with_node(node is not False))
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        left_out = set()
        if isinstance(node.get("allOf"), list):
            waiting += [one.at(inner) for inner in reversed(node["allOf"])]
            left_out.add("allOf")
        if "$ref" in node and (target := resolve_reference(one)) is not None:
            waiting.append(target)
            left_out.add("$ref")
        own = {key: value for key, value in node.items() if key not in left_out} if left_out else node
        if not left_out or own.keys() & ASSERTIONS:
            parts.append(one.with_node(own))
    return parts


def members_of(parts: list[Schema], name: str) -> list[Schema]:
    """Schemas that the value of the member ``name`` satisfies, in each object that satisfies all ``parts``."""
    found = []
    for part in _objects(parts):
        own, others = _map(part.node, "properties"), part.node.get("additionalProperties")
        if name in own:
            found.append(part.at(own[name]))
        elif others is not None and not part.node.get("patternProperties"):
            # With patterns, the name may match one of them.
            found.append(part.at(others))
    return found


def listed_names(parts: list[Schema]) -> frozenset[str] | None:
    """Names of the members that objects of ``parts`` list, in all branches; ``None`` where they accept others, or list
    none."""
    names: set[str] | None = None
    waiting, seen = [part for part in parts if isinstance(part.node, dict)], set[int]()
    while waiting:
        part = waiting.pop()
        node = part.node
        if any(node.get(key, False) is not False for key in ("additionalProperties", "unevaluatedProperties")):
            return None
        if node.get("patternProperties") or node.keys() & (REFERENCES | {"dependencies"}):
            return None
        if isinstance(node.get("properties"), dict):
            names = (names or set()) | node["properties"].keys()
        branches = [*_list(node, "anyOf"), *_list(node, "oneOf"), *_map(node, "dependentSchemas").values()]
        branches += [node[key] for key in CONDITIONS if key in node]
        for branch in branches:
            if isinstance(branch, dict) and id(branch) not in seen:
                seen.add(id(branch))
                waiting += _objects(parts_of(part.at(branch)))
    return None if names is None else frozenset(names)


def are_same_values(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(are_same_values, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(are_same_values(first[key], second[key]) for key in first)
    return bool(first == second)


@dataclass
class _Equality:
    """Structural equality. Two schemas that refer to each other's equals are equal, since an instance is finite."""

    limits: Limits
    assumed: set[tuple[int, int]] = field(default_factory=set)

    def are_equal(self, first: Schema, second: Schema, depth: int) -> bool:
        one, other = first.node, second.node
        if one is other and first.root is second.root:
            return True
        if not self.limits.take_step() or depth > MOST_DEPTH:
            return False
        if not isinstance(one, dict) or not isinstance(other, dict):
            return (_is_open(one) and _is_open(other)) or (one is False and other is False)
        if (id(one), id(other)) in self.assumed:
            return True
        self.assumed.add((id(one), id(other)))
        keys = one.keys() & ASSERTIONS
        if keys != other.keys() & ASSERTIONS:
            return False
        return all(self._are_equal_at(key, first, second, depth + 1) for key in keys)

    def _are_equal_at(self, key: str, first: Schema, second: Schema, depth: int) -> bool:
        one, other = first.node[key], second.node[key]
        if key == "$ref":
            left, right = resolve_reference(first), resolve_reference(second)
            # The base of a reference outside of the document is not known.
            return left is not None and right is not None and self.are_equal(left, right, depth)
        if key in REFERENCES or key == "dependencies":
            return False
        if key in LISTS and isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(
                self.are_equal(first.at(left), second.at(right), depth) for left, right in zip(one, other, strict=True)
            )
        if key in SCHEMAS:
            return self.are_equal(first.at(one), second.at(other), depth)
        if key in MAPS and isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(
                self.are_equal(first.at(one[name]), second.at(other[name]), depth) for name in one
            )
        if key in SETS and isinstance(one, list) and isinstance(other, list):
            return _contains_all(one, other) and _contains_all(other, one)
        return are_same_values(one, other)


@dataclass
class _Proof:
    """A proof that all instances of several schemas (the facts) satisfy another schema (the goal)."""

    limits: Limits
    assumed: dict[tuple[frozenset[int], int], int] = field(default_factory=dict)
    """Inclusions that are being proved, each with the depth of the instance. A proof may use one of these at a deeper
    place of the instance: the instance is finite, so the proof is an induction over its depth."""

    def is_included(self, facts: list[Schema], goal: Schema, depth: int) -> bool:
        if not self.limits.take_step() or depth > MOST_DEPTH:
            return False
        key = (frozenset(id(fact.node) for fact in facts), id(goal.node))
        if key in self.assumed:
            return depth > self.assumed[key]
        self.assumed[key] = depth
        try:
            parts = [part for fact in facts for part in parts_of(fact)]
            return self._holds(parts, facts, goal, listed_names(parts), depth)
        finally:
            del self.assumed[key]

    def _holds(
        self, parts: list[Schema], whole: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        """``parts`` are those of ``whole``; ``names`` are the only members of its objects, where they are known."""
        if not self.limits.take_step():
            return False
        if _is_open(goal.node) or _accepts_nothing(parts):
            return True
        if any(are_equal(fact, goal, self.limits) for fact in whole):
            return True
        goals = parts_of(goal)
        if all(self._satisfies(parts, one, names, depth) for one in goals):
            return True
        return self._holds_in_each_case(parts, goal, names, depth)

    def _holds_in_each_case(self, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int) -> bool:
        """Divides the instances by a disjunction of the facts, and proves the goal for each part of them."""
        for at, part in enumerate(parts):
            node = part.node
            for key in ("anyOf", "oneOf"):
                if branches := _list(node, key):
                    rest = part.with_node({name: value for name, value in node.items() if name != key})
                    others = [*parts[:at], rest, *parts[at + 1 :]]
                    return all(self._holds_for(others, part.at(one), goal, names, depth) for one in branches)
        values = _known_values(parts)
        if values is not None and len(values) > 1:
            return all(self._holds_for(parts, goal.with_node({"const": value}), goal, names, depth) for value in values)
        types = _types(parts)
        number = {"integer", "fraction"}
        groups = [{one} for one in types - number] + ([types & number] if types & number else [])
        if len(groups) < 2:
            return False
        words = [("number" if "fraction" in group else next(iter(group))) for group in groups]
        return all(self._holds_for(parts, goal.with_node({"type": word}), goal, names, depth) for word in words)

    def _holds_for(
        self, others: list[Schema], branch: Schema, goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        return self._holds([*others, *parts_of(branch)], [*others, branch], goal, names, depth)

    def _satisfies(self, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int) -> bool:
        """Whether the facts satisfy each keyword of one part of the goal."""
        if not isinstance(goal.node, dict):
            return goal.node is True
        types = _types(parts)
        if "fraction" in types:
            types |= {"integer"}
        irrelevant = set().union(*(keys for type_, keys in APPLIES_TO.items() if type_ not in types))
        return all(
            self._satisfies_keyword(key, parts, goal, names, depth)
            for key in goal.node
            if key in ASSERTIONS and key not in irrelevant
        )

    def _satisfies_keyword(
        self, key: str, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        node = goal.node
        value = node[key]
        if key in WHOLE:
            return False
        if key == "type":
            return _types(parts) <= _type_set(value)
        if key in ("enum", "const"):
            known = _known_values(parts)
            permitted = value if key == "enum" else [value]
            return known is not None and isinstance(permitted, list) and _contains_all(permitted, known)
        if key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            return _satisfies_bound(key, value, parts)
        if key == "multipleOf":
            return _satisfies_multiple(value, parts)
        if key in COUNTS:
            return _satisfies_count(key, value, parts)
        if key == "uniqueItems":
            return value is not True or any(part.node.get(key) is True for part in _objects(parts))
        if key == "required":
            return isinstance(value, list) and _contains_all(list(_required(parts)), value)
        if key == "properties":
            return isinstance(value, dict) and all(
                self._satisfies_member(parts, name, goal.at(inner), names, depth) for name, inner in value.items()
            )
        if key == "additionalProperties":
            return self._satisfies_other_members(parts, goal, names, depth)
        if key == "patternProperties":
            return self._is_implied_by_equal(("patternProperties",), parts, goal)
        if key in ("items", "prefixItems", "additionalItems"):
            return self._satisfies_items(parts, goal, depth)
        if key in ("anyOf", "oneOf"):
            return self._satisfies_alternative(key, parts, goal, names, depth)
        if key == "not":
            own = [part.at(part.node["not"]) for part in _objects(parts) if "not" in part.node]
            return any(are_equal(goal.at(value), one, self.limits) for one in own) or self._are_disjoint(
                parts, parts_of(goal.at(value)), depth
            )
        if key == "propertyNames":
            own = [part.at(part.node[key]) for part in _objects(parts) if key in part.node]
            return bool(own) and self.is_included(own, goal.at(value), depth + 1)
        if key in ("then", "else", "minContains", "maxContains"):
            return True  # "if" and "contains" are proved together with these
        return self._is_implied_by_equal(OPAQUE.get(key, (key,)), parts, goal)

    def _is_implied_by_equal(self, keys: tuple[str, ...], parts: list[Schema], goal: Schema) -> bool:
        wanted = goal.with_node({key: goal.node[key] for key in keys if key in goal.node})
        return any(
            are_equal(part.with_node({key: part.node[key] for key in keys if key in part.node}), wanted, self.limits)
            for part in _objects(parts)
        )

    def _satisfies_member(
        self, parts: list[Schema], name: str, goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        if names is not None and name not in names:
            return True
        return self.is_included(members_of(parts, name), goal, depth + 1)

    def _satisfies_other_members(
        self, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        if goal.node.get("patternProperties"):
            keys = ("additionalProperties", "patternProperties", "properties")
            return self._is_implied_by_equal(keys, parts, goal)
        inner = goal.at(goal.node["additionalProperties"])
        known = set().union(*(_map(part.node, "properties") for part in _objects(parts)), names or ())
        others = known - _map(goal.node, "properties").keys()
        if not all(self._satisfies_member(parts, name, inner, names, depth) for name in others):
            return False
        if names is not None:
            return True
        generic = [
            part.at(part.node["additionalProperties"])
            for part in _objects(parts)
            if "additionalProperties" in part.node and not part.node.get("patternProperties")
        ]
        return self.is_included(generic, inner, depth + 1)

    def _satisfies_items(self, parts: list[Schema], goal: Schema, depth: int) -> bool:
        """Each position of a tuple, and all later positions."""
        own = [_tuple_of(part) for part in _objects(parts)]
        wanted, wanted_rest = _tuple_of(goal)
        length = max([len(wanted), *(len(positions) for positions, _ in own)])
        longest = _count(parts, "maxItems")
        for at in range(length + 1):
            if longest is not None and longest <= at:
                return True
            inner = wanted[at] if at < len(wanted) else wanted_rest
            if inner is None:
                continue
            facts = [one for places, rest in own if (one := places[at] if at < len(places) else rest) is not None]
            if not self.is_included(facts, inner, depth + 1):
                return False
        return True

    def _satisfies_alternative(
        self, key: str, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int
    ) -> bool:
        if self._is_implied_by_equal((key,), parts, goal):
            return True
        branches = [goal.at(one) for one in _list(goal.node, key)]
        for at, branch in enumerate(branches):
            others = [*branches[:at], *branches[at + 1 :]] if key == "oneOf" else []
            if self._holds_without_cases(parts, branch, names, depth) and all(
                self._are_disjoint(parts, parts_of(other), depth) for other in others
            ):
                return True
        return False

    def _holds_without_cases(self, parts: list[Schema], goal: Schema, names: frozenset[str] | None, depth: int) -> bool:
        if not self.limits.take_step():
            return False
        if any(are_equal(part, goal, self.limits) for part in parts):
            return True
        return all(self._satisfies(parts, one, names, depth) for one in parts_of(goal))

    def _are_disjoint(self, parts: list[Schema], others: list[Schema], depth: int) -> bool:
        """Whether no instance is proved to satisfy both. Objects may differ in a member that both require."""
        if not self.limits.take_step() or depth > MOST_DEPTH:
            return False
        shared = _types(parts) & _types(others)
        if not shared or _accepts_nothing(parts) or _accepts_nothing(others):
            return True
        values, other_values = _known_values(parts), _known_values(others)
        if values is not None and other_values is not None:
            is_short = len(values) * len(other_values) <= MOST_PAIRS
            return is_short and not any(are_same_values(one, other) for one in values for other in other_values)
        return shared == {"object"} and any(
            self._are_disjoint(_member_parts(parts, name), _member_parts(others, name), depth + 1)
            for name in _required(parts) & _required(others)
        )


COUNTS = {
    "minLength": "least",
    "maxLength": "most",
    "minItems": "least",
    "maxItems": "most",
    "minProperties": "least",
    "maxProperties": "most",
}


def _is_document(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get("$id"), str)


def _member_parts(parts: list[Schema], name: str) -> list[Schema]:
    return [inner for one in members_of(parts, name) for inner in parts_of(one)]


def _objects(parts: Iterable[Schema]) -> Iterator[Schema]:
    return (part for part in parts if isinstance(part.node, dict))


def _map(node: Any, key: str) -> dict[str, Any]:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def _list(node: Any, key: str) -> list[Any]:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, list) else []


def _is_open(node: Any) -> bool:
    """Whether a schema accepts everything."""
    return node is not False and not (isinstance(node, dict) and node.keys() & ASSERTIONS)


def _accepts_nothing(parts: list[Schema]) -> bool:
    return any(part.node is False for part in parts) or not _types(parts)


def _type_set(value: Any) -> set[str]:
    words = value if isinstance(value, list) else [value]
    return set().union(*(TYPES.get(word, set()) for word in words if isinstance(word, str)))


def _types(parts: list[Schema]) -> set[str]:
    """The types that instances of all parts can have."""
    found = set(ALL_TYPES)
    for part in _objects(parts):
        if "type" in part.node:
            found &= _type_set(part.node["type"])
        for values in _value_lists(part):
            found &= {_type_of(value) for value in values}
    return found


def _value_lists(part: Schema) -> Iterator[list[Any]]:
    if isinstance(part.node.get("enum"), list):
        yield part.node["enum"]
    if "const" in part.node:
        yield [part.node["const"]]


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "null"


def _known_values(parts: list[Schema]) -> list[Any] | None:
    """All values that can satisfy the parts, where they are listed; ``None`` elsewhere."""
    types = _types(parts)
    lists = [values for part in _objects(parts) for values in _value_lists(part)]
    if not lists:
        if not types <= {"boolean", "null"}:
            return None
        lists = [[True, False, None]]
    first, *others = lists
    return [
        value for value in first if _type_of(value) in types and all(_contains_all(other, [value]) for other in others)
    ]


def _contains_all(values: list[Any], wanted: list[Any]) -> bool:
    """Whether each wanted value is among the values. Structured values count as equal where their texts are."""
    keys = {_value_key(value) for value in values}
    return all(_value_key(one) in keys for one in wanted)


def _value_key(value: Any) -> tuple[str, Any]:
    if isinstance(value, list | dict):
        return "text", json.dumps(value, sort_keys=True)
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "other", value


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    )


def _required(parts: list[Schema]) -> set[str]:
    return {name for part in _objects(parts) for name in _list(part.node, "required") if isinstance(name, str)}


def _count(parts: list[Schema], key: str) -> float | None:
    """The strictest value of a keyword for a count."""
    values: list[float] = [part.node[key] for part in _objects(parts) if _is_number(part.node.get(key))]
    if key == "minProperties":
        values.append(len(_required(parts)))
    if COUNTS[key] == "least":
        return max(values, default=0)
    return min(values, default=None)


def _satisfies_count(key: str, value: Any, parts: list[Schema]) -> bool:
    own = _count(parts, key)
    if not _is_number(value) or own is None:
        return False
    return bool(own >= value if COUNTS[key] == "least" else own <= value)


def _satisfies_bound(key: str, value: Any, parts: list[Schema]) -> bool:
    is_lower = key.lower().endswith("minimum")
    sign = 1 if is_lower else -1
    inclusive, exclusive = ("minimum", "exclusiveMinimum") if is_lower else ("maximum", "exclusiveMaximum")
    if not _is_number(value) or any(isinstance(part.node.get(exclusive), bool) for part in _objects(parts)):
        return False  # exclusiveMinimum is a boolean in draft 4
    is_whole = "fraction" not in _types(parts)
    for part in _objects(parts):
        for own_key in (inclusive, exclusive):
            own = part.node.get(own_key)
            if not _is_number(own):
                continue
            distance = sign * (own - value)
            if distance > 0 or (distance == 0 and (key == inclusive or own_key == exclusive)):
                return True
            # Integers above an integer begin at the next one.
            if is_whole and own_key == exclusive and key == inclusive and own == int(own) and distance >= -1:
                return True
    return False


def _satisfies_multiple(value: Any, parts: list[Schema]) -> bool:
    if not _is_number(value) or value <= 0:
        return False
    if value == 1 and "fraction" not in _types(parts):
        return True
    own = [part.node["multipleOf"] for part in _objects(parts) if _is_number(part.node.get("multipleOf"))]
    return any(one == value or (isinstance(one, int) and isinstance(value, int) and one % value == 0) for one in own)


def _tuple_of(schema: Schema) -> tuple[list[Schema], Schema | None]:
    """The schemas of the first items, and the schema of the items after them."""
    node = schema.node
    if isinstance(node.get("items"), list):
        first, rest = node["items"], node.get("additionalItems")
    else:
        first, rest = _list(node, "prefixItems"), node.get("items")
    return [schema.at(one) for one in first], None if rest is None else schema.at(rest)
