"""Reading a tool's listing, including malformed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpace.lab import tool_schema
from mcpace.lab.errors import UsageProblem

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda deeper: (
        st.lists(deeper, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "enum", "default", "required", "properties", "examples", "format", "minimum", "a", "string"]
            ),
            deeper,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def tool(name: str, properties: dict[str, Any], *required: str, read_only: bool = False) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}}


def test_a_required_argument_is_never_invented() -> None:
    status = tool("git_status", {"repo_path": {"type": "string"}, "depth": {"type": "integer"}}, "repo_path")
    assert tool_schema.fixed_arguments(status) == {}
    with pytest.raises(UsageProblem) as refused:
        tool_schema.require_arguments(status, {}, "--tool and --args")
    assert str(refused.value) == "git_status needs repo_path; give --tool and --args"
    tool_schema.require_arguments(status, {"repo_path": "."}, "--tool and --args")


def test_a_value_of_the_schemas_own_is_taken() -> None:
    look = tool("look", {"a": {"type": "integer", "default": 7}, "b": {"const": "x"}}, "a", "b")
    assert tool_schema.fixed_arguments(look) == {"a": 7, "b": "x"}


def test_an_echo_takes_any_text_and_nothing_else() -> None:
    assert tool_schema.fixed_arguments(tool("echo", {"text": {"type": "string"}}, "text")) == {"text": "mcpace"}
    assert tool_schema.fixed_arguments(tool("echo", {"n": {"type": "integer"}}, "n")) == {}
    assert tool_schema.fixed_arguments(tool("shout", {"text": {"type": "string"}}, "text")) == {}


def test_a_tool_without_required_arguments_is_preferred_and_a_read_only_one_most() -> None:
    needy = tool("needy", {"a": {"type": "string"}}, "a", read_only=True)
    plain, looking = tool("plain", {}), tool("looking", {}, read_only=True)
    assert [one["name"] for one in tool_schema.easiest_tools([needy, plain, looking])] == ["looking", "plain"]


@given(ANYTHING)
def test_no_listing_is_a_fault_of_ours(anything: Any) -> None:
    listed = {"name": "a", "inputSchema": anything, "annotations": anything}
    json.dumps(tool_schema.fixed_arguments(listed))
    properties = {"properties": {"a": anything}, "required": ["a"]}
    json.dumps(
        tool_schema.example_arguments({"name": "a", "inputSchema": properties, "annotations": {"readOnlyHint": True}})
    )
    tool_schema.missing_arguments(listed, {})
    assert tool_schema.listing_bytes([listed]) > 0
    assert tool_schema.is_read_only(listed) in (True, False)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "mcpace"),
        ({"type": "string", "examples": ["Oslo"]}, "Oslo"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "boolean"}, False),
        ({"type": "array"}, []),
        ({"type": "string", "default": "d", "examples": ["e"]}, "d"),
        ({"type": "string", "pattern": "^x+$"}, None),
        ({"type": "string", "format": "iban"}, None),
        ({"type": "string", "minLength": 50}, None),
        ({"type": "integer", "exclusiveMinimum": 0}, None),
        ({"type": "object"}, None),
        ("no schema", None),
    ],
)
def test_read_only_tools_get_examples_or_simple_values(schema: object, value: object) -> None:
    tool = {
        "name": "t",
        "inputSchema": {"properties": {"a": schema, "optional": {"type": "string"}}, "required": ["a"]},
        "annotations": {"readOnlyHint": True},
    }
    assert tool_schema.example_arguments(tool) == ({} if value is None else {"a": value})


def test_an_example_of_the_whole_schema_comes_before_invented_values() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "required": ["a"], "examples": [{"a": "Oslo"}]}
    tool = {"name": "t", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    assert tool_schema.example_arguments(tool) == {"a": "Oslo"}
    # A tool that isn't read-only gets no invented values.
    assert tool_schema.example_arguments({"name": "t", "inputSchema": schema}) == {}
