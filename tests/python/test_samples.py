"""Arguments made up from what a server says its tools take, whatever it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpace.lab import samples

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda deeper: (
        st.lists(deeper, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "enum", "default", "required", "properties", "a", "string"]), deeper, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "integer"}, 1),
        ({"type": ["null", "string"]}, None),
        ({"type": ["string", "null"]}, "mcpace"),
        ({"type": "integer", "default": 7}, 7),
        ({"enum": ["b", "a"]}, "b"),
        ({"enum": {"b": 1}}, "mcpace"),
        ({"type": "whatever"}, "mcpace"),
        (True, "mcpace"),
        (None, "mcpace"),
    ],
)
def test_a_value_is_of_the_schemas_type(schema: object, made: object) -> None:
    assert samples.sample(schema) == made


def test_only_what_is_required_is_made() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "c"]}
    assert samples.arguments(schema) == {"a": 1, "c": "mcpace"}


@given(ANYTHING)
def test_no_schema_is_a_fault_of_ours(schema: Any) -> None:
    json.dumps(samples.arguments(schema))
    json.dumps(samples.sample(schema))
