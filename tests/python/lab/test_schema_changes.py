"""Changes between two JSON Schemas: a table of cases, and a property that generated instances check."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpace.lab.compare import schema_inclusion
from mcpace.lab.compare.schema_changes import schema_changes
from mcpace.lab.compare.schema_inclusion import Limits, Schema, is_included

STRING, INTEGER, NUMBER, NULL = ({"type": name} for name in ("string", "integer", "number", "null"))


def of_members(*required: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, **({"required": list(required)} if required else {})}


def changes(base: Any, now: Any, flow: Any = "input") -> set[tuple[str, str, str]]:
    found = schema_changes(base, now, "search", flow, Limits())
    return {(one.level, one.kind, one.place) for one in found}


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "value": STRING}}
CLOSED = {"additionalProperties": False}
XY, X = {"enum": ["x", "y"]}, {"enum": ["x"]}
SHORT, LONG = ({"type": "string", "maxLength": most} for most in (3, 5))
NULLABLE = {"anyOf": [STRING, NULL]}
INPUTS: list[tuple[str, Any, Any, set[tuple[str, str, str]]]] = [
    ("removed", of_members(a=STRING), of_members(), {("breaking", "removed", "a")}),
    ("new and optional", of_members(), of_members(a=STRING), {("widening", "added", "a")}),
    ("first parameter", {"type": "object"}, of_members(a=STRING), {("widening", "added", "a")}),
    ("new and required", of_members(), of_members("a", a=STRING), {("breaking", "required", "a")}),
    ("required now", of_members(a=STRING), of_members("a", a=STRING), {("breaking", "required", "a")}),
    ("optional now", of_members("a", a=STRING), of_members(a=STRING), {("widening", "optional", "a")}),
    ("type narrowed", of_members(a=NUMBER), of_members(a=INTEGER), {("breaking", "narrower", "a")}),
    ("type widened", of_members(a=INTEGER), of_members(a=NUMBER), {("widening", "wider", "a")}),
    ("other type", of_members(a=STRING), of_members(a=INTEGER), {("breaking", "changed", "a")}),
    (
        "value removed",
        of_members(a=XY),
        of_members(a=X),
        {("breaking", "narrower", "a")},
    ),
    ("value added", of_members(a=X), of_members(a={"enum": ["y", "x"]}), {("widening", "wider", "a")}),
    ("any string", of_members(a=X), of_members(a=STRING), {("widening", "wider", "a")}),
    ("null added", of_members(a=STRING), of_members(a=NULLABLE), {("widening", "wider", "a")}),
    ("null removed", of_members(a=NULLABLE), of_members(a=STRING), {("breaking", "narrower", "a")}),
    (
        "null written in another way",
        of_members(a=NULLABLE),
        of_members(a={"type": ["null", "string"]}),
        set(),
    ),
    (
        "longer",
        of_members(a=SHORT),
        of_members(a=LONG),
        {("widening", "wider", "a")},
    ),
    (
        "shorter",
        of_members(a=LONG),
        of_members(a=SHORT),
        {("breaking", "narrower", "a")},
    ),
    (
        "pattern",
        of_members(a=STRING),
        of_members(a={"type": "string", "pattern": "^x"}),
        {("breaking", "narrower", "a")},
    ),
    (
        "format",
        of_members(a=STRING),
        of_members(a=STRING | {"format": "uri"}),
        {("breaking", "narrower", "a")},
    ),
    ("closed", of_members(a=STRING), {**of_members(a=STRING), **CLOSED}, {("breaking", "narrower", "*")}),
    ("opened", {**of_members(a=STRING), **CLOSED}, of_members(a=STRING), {("widening", "wider", "*")}),
    (
        "new where any other member was accepted",
        {**of_members(), "additionalProperties": True},
        of_members(a=STRING),
        {("breaking", "added", "a")},
    ),
    (
        "inside",
        of_members(a=of_members(b=NUMBER)),
        of_members(a=of_members(b=INTEGER)),
        {("breaking", "narrower", "a.b")},
    ),
    (
        "items",
        of_members(a={"type": "array", "items": STRING}),
        of_members(a={"type": "array", "items": {"type": ["string", "integer"]}}),
        {("widening", "wider", "a[]")},
    ),
    (
        "inside of an optional object",
        of_members(a={"anyOf": [of_members(b=STRING), NULL]}),
        of_members(a={"anyOf": [of_members(b=STRING, c=STRING), NULL]}),
        {("widening", "added", "a.c")},
    ),
    (
        "an object that becomes optional and changes",
        of_members(a=of_members(b=NUMBER)),
        of_members(a={"anyOf": [of_members(b=INTEGER), NULL]}),
        {("widening", "wider", "a"), ("breaking", "narrower", "a.b")},
    ),
    (
        "by reference",
        {**of_members(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"enum": ["x", "y"]}}},
        {**of_members(a={"$ref": "#/definitions/B"}), "definitions": {"B": {"enum": ["y"]}}},
        {("breaking", "narrower", "a")},
    ),
    (
        "by recursion",
        {**of_members(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}},
        {**of_members(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": {**NODE, "required": ["value"]}}},
        {("breaking", "required", "a.value")},
    ),
    (
        "one more kind in a union with a discriminator",
        of_members(a={"oneOf": [of_members("k", k={"const": "x"}), of_members("k", k={"const": "y"})]}),
        of_members(a={"oneOf": [of_members("k", k={"const": value}) for value in "xyz"]}),
        {("widening", "wider", "a")},
    ),
    (
        "words",
        of_members(a={**STRING, "description": "One."}),
        of_members(a={**STRING, "description": "Two.", "default": "x"}),
        {("wording", "changed", "a description"), ("wording", "changed", "a default")},
    ),
    (
        "a parameter named like a keyword",
        of_members(title=STRING),
        of_members(title=INTEGER),
        {("breaking", "changed", "title")},
    ),
    ("equal", of_members("a", a=STRING), {"required": ["a"], **of_members(a=STRING)}, set()),
]
OUTPUTS: list[tuple[str, Any, Any, set[tuple[str, str, str]]]] = [
    ("lost", of_members("a", a=STRING), of_members(), {("breaking", "removed", "a")}),
    ("may be missing", of_members("a", a=STRING), of_members(a=STRING), {("breaking", "optional", "a")}),
    ("always present", of_members(a=STRING), of_members("a", a=STRING), {("widening", "required", "a")}),
    ("new", of_members(a=STRING), of_members(a=STRING, b=STRING), {("widening", "added", "b")}),
    (
        "new where readers refuse it",
        {**of_members(), **CLOSED},
        {**of_members(b=STRING), **CLOSED},
        {("breaking", "added", "b")},
    ),
    ("wider", of_members(a=INTEGER), of_members(a=NUMBER), {("breaking", "wider", "a")}),
    ("null", of_members(a=STRING), of_members(a=NULLABLE), {("breaking", "wider", "a")}),
    ("narrower", of_members(a=NUMBER), of_members(a=INTEGER), {("widening", "narrower", "a")}),
    ("one more value", of_members(a=X), of_members(a=XY), {("breaking", "wider", "a")}),
]


@pytest.mark.parametrize(("base", "now", "expected"), [row[1:] for row in INPUTS], ids=[row[0] for row in INPUTS])
def test_changes_of_parameters(base: Any, now: Any, expected: set[tuple[str, str, str]]) -> None:
    assert changes(base, now) == expected
    assert changes(base, base) == set()


@pytest.mark.parametrize(("base", "now", "expected"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS])
def test_changes_of_results(base: Any, now: Any, expected: set[tuple[str, str, str]]) -> None:
    assert changes(base, now, "output") == expected


# --- the property ---

NAMES = ("x", "y", "z")
SCALARS: list[Any] = ["a", "b", 1, 2, None, True, 1.5]
IN_PLACE = ("anyOf", "oneOf", "allOf")

leaves = st.one_of(
    st.sampled_from(
        [STRING, INTEGER, NUMBER, NULL, {"type": "boolean"}, {"type": ["string", "null"]}, {}, True, False]
    ),
    st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.builds(
        lambda low, high: {"type": "string", "minLength": low, "maxLength": high}, st.integers(0, 2), st.integers(1, 3)
    ),
    st.builds(
        lambda name, key, value: {"type": name, key: value},
        st.sampled_from(["integer", "number"]),
        st.sampled_from(["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"]),
        st.integers(-1, 3),
    ),
    st.sampled_from([1, 2, 4]).map(lambda value: {"type": "integer", "multipleOf": value}),
    st.sampled_from(["^a", "a$"]).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.just({"$ref": "#/$defs/R"}),
)


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "maxProperties": st.integers(1, 2),
            "patternProperties": st.dictionaries(st.just("^x"), inner, min_size=1, max_size=1),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
        },
    )
    unions = st.builds(
        lambda key, branches: {key: branches}, st.sampled_from(IN_PLACE), st.lists(inner, min_size=1, max_size=3)
    )
    return st.one_of(objects, objects, arrays, unions, inner.map(lambda one: {"not": one}))


schemas = st.recursive(leaves, composed, max_leaves=6)
values = st.recursive(
    st.sampled_from([*SCALARS, "", "aa", "ba", 0, -1, 3, 2.0, False]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from([*NAMES, "w", "xa"]), inner, max_size=3), st.lists(inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def edited(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with one edit at a random place, so that most of it stays."""
    if not isinstance(schema, dict) or not schema or draw(st.integers(0, 4)) == 0:
        return draw(schemas)
    key = draw(st.sampled_from(sorted(schema)))
    value = schema[key]
    if key in ("properties", "patternProperties") and value:
        name = draw(st.sampled_from(sorted(value)))
        return {**schema, key: {**value, name: draw(edited(value[name]))}}
    if key in (*IN_PLACE, "prefixItems"):
        at = draw(st.integers(0, len(value) - 1))
        changed = [*value[:at], draw(edited(value[at])), *value[at + 1 :]]
        return {**schema, key: draw(st.sampled_from([changed, [*value, value[at]], [*changed, draw(leaves)]]))}
    if key in ("items", "not", "additionalProperties"):
        return {**schema, key: draw(edited(value))}
    return {name: one for name, one in schema.items() if name != key}


def closed(schema: Any, *, is_place: bool = True) -> Any:
    """The schema as its sender reads it: an object has no other members than the listed ones."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for key in (*IN_PLACE, "prefixItems"):
        if key in made:
            made[key] = [closed(one, is_place=key == "prefixItems") for one in made[key]]
    for key in ("properties", "patternProperties"):
        if key in made:
            made[key] = {name: closed(one) for name, one in made[key].items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = closed(made[key])
    branches = in_place(schema)
    if is_place and any("properties" in one for one in branches) and not any(is_open(one) for one in branches):
        made["unevaluatedProperties"] = False
    return made


def of_object(schema: Any) -> Any:
    """The schema of a tool's arguments or structured result, which is an object in any case."""
    return {"type": "object", "properties": {}, **schema} if isinstance(schema, dict) else schema


def in_place(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [one for key in IN_PLACE for one in schema.get(key, []) if isinstance(one, dict)]
    return [schema, *(found for one in inner for found in in_place(one))]


def is_open(schema: dict[str, Any]) -> bool:
    # The schema that is referred to, #/$defs/R, lists no members.
    return schema.get("additionalProperties", False) is not False or "patternProperties" in schema


RECURSIVE = {"R": {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/R"}}]}}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    base = draw(composed(schemas))
    now = draw(edited(base))
    now = draw(edited(now)) if draw(st.booleans()) else now
    return {**base, "$defs": RECURSIVE}, {**now, "$defs": RECURSIVE} if isinstance(now, dict) else now


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs(), st.lists(values, min_size=20, max_size=20))
def test_an_instance_of_before_is_accepted_where_no_change_is_breaking(
    pair: tuple[Any, Any], instances: list[Any]
) -> None:
    base, now = pair
    for flow, sent, received in (("input", base, now), ("output", now, base)):
        if any(level == "breaking" for level, _, _ in changes(base, now, flow)):
            continue
        senders = jsonschema.Draft202012Validator(closed(of_object(sent)))
        receivers = jsonschema.Draft202012Validator(of_object(received))
        for instance in instances:
            assert not senders.is_valid(instance) or receivers.is_valid(instance), (flow, base, now, instance)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas)
def test_a_schema_includes_itself_and_its_copy(schema: Any) -> None:
    whole = {"allOf": [schema], "$defs": RECURSIVE}
    copy = json.loads(json.dumps(whole))
    assert is_included(Schema(whole, whole), Schema(copy, copy), Limits())
    assert changes(whole, copy) == set()


# --- hostile schemas ---


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = of_members(a=leaf)
    return leaf


LOOP = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"allOf": [{"$ref": "#/$defs/A"}]}]}}}
WIDE = {"allOf": [{"anyOf": [of_members(**{f"p{at}": STRING}), of_members(**{f"q{at}": STRING})]} for at in range(40)]}


@pytest.mark.parametrize(
    ("base", "now"),
    [
        (LOOP, {**LOOP, "type": "object"}),
        (nested(120, STRING), nested(120, INTEGER)),
        (WIDE, {**WIDE, "required": ["p1"]}),
        ({"enum": list(range(20_000))}, {"enum": list(range(19_999, -1, -1)), "minimum": 0}),
        ({"$ref": "https://example.com/other.json"}, {"$ref": "https://example.com/other.json"}),
        ({"type": 7, "properties": [], "required": {}, "enum": "x"}, {"type": ["x", 3], "allOf": {}, "anyOf": 1}),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, {"properties": {"a": {"pattern": "(a+)+$", "maxLength": 9}}}),
        ([], "text"),
        ({"minimum": 10**400}, {"minimum": -(10**400)}),
    ],
)
def test_a_hostile_schema_ends_in_bounded_steps(base: Any, now: Any) -> None:
    limits = Limits(steps=20_000)
    begun = time.process_time()
    for flow in ("input", "output"):
        schema_changes(base, now, "t", flow, limits)
    assert time.process_time() - begun < schema_inclusion.LIMIT_S + 10


def test_a_difference_beyond_the_limits_counts_as_breaking() -> None:
    base, now = nested(60, STRING), nested(60, INTEGER)
    assert {level for level, _, _ in changes(base, now)} == {"breaking"}
    assert {one.level for one in schema_changes(nested(3, STRING), nested(3, INTEGER), "t", "input", Limits(0))} == {
        "breaking"
    }
