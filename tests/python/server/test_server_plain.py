"""The parts of a plain tool's call that the compiled part does without Python: reading and writing values of simple
types. Its result equals Python's; where that isn't certain, Python does the work."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import Field
from pydantic_core import ValidationError, from_json

from mcpace import MCPServer, _core
from mcpace.server.core.handlers import HandlerPlan, tool_plan
from support import core_server
from support.fast_path import assert_parity
from support.python_server import LEGACY, Client, served


class Number(int):
    """A subclass, which may override anything."""


class Text(str):
    __slots__ = ()


class Color(enum.IntEnum):
    RED = 1


class Mapping(dict[str, Any]):
    pass


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


ODD = "".join(map(chr, range(0x300))) + "\u2028\ufeff\uffff\U0001f600"
PLAIN: dict[Any, list[Any]] = {
    int: [0, -1, 2**63 - 1, -(2**63)],
    bool: [True, False],
    dict[str, int]: [{}, {"a": 1}, {"b": 2, "a": -(2**63), "": 0, ODD: 5}],
    dict[str, bool]: [{}, {"a": True, "b": False}],
    dict[str, str]: [{}, {"a": "b", "é": '"\\\x00\x1f\x7f'}, {ODD: ODD}],
    dict[str, Any]: [{}, {"a": None, "b": [1, True, "x", [], {}, None, {"c": [2]}], "d": {"e": {}}}, nested(14)],
}
OTHER: dict[Any, list[Any]] = {
    int: [2**63, True, Number(3), Color.RED, 1.0, "3", None],
    bool: [1, "true", None],
    dict[str, int]: [
        *({"a": 2**64}, {"a": True}, {"a": Number(1)}, {"a": "1"}, {"a": 1.0}, {"a": None}, {Text("a"): 1}),
        *({1: 1}, {"\ud800": 1}, Mapping(a=1), collections.OrderedDict(a=1), None, [("a", 1)], 3, "a"),
    ],
    dict[str, bool]: [{"a": 1}, {"a": "yes"}],
    dict[str, str]: [{"a": 1}, {"a": Text("b")}, {"a": "\ud800"}, {"a": None}],
    dict[str, Any]: [
        *({"a": 1.5}, {"a": math.nan}, {"a": 2**70}, {"a": (1,)}, {"a": {1: 2}}, {"a": [Text("b")]}, {"a": {1}}),
        *({"a": b"b"}, {"a": dataclasses}, nested(20), nested(40), Mapping(a=1), {"a": Mapping()}),
    ],
    Annotated[int, Field(ge=5)]: [3, 7],
    dict[str, float]: [{"a": 1}, {"a": 1.5}],
    dict[str, Annotated[int, Field(ge=5)]]: [{"a": 3}, {"a": 7}],
}


def returning(annotation: Any) -> HandlerPlan:
    """The plan of a tool whose values are of this type."""

    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    server = MCPServer("t")
    server.add_tool(tool)
    return tool_plan(server.__mcpace_core__, server.registry.tools["tool"])


Path = Callable[[Any], str]


@contextmanager
def paths(annotation: Any) -> Iterator[tuple[Path, Path, list[Any]]]:
    """Calls of a tool that returns the given value: on the fast path, on the general path, and the values that the fast
    path left to Python."""
    plan, left, returned = returning(annotation), [], [None]

    def finish(value: Any) -> Any:
        left.append(value)
        assert plan.finish is not None
        return plan.finish(value)

    bare = dataclasses.replace(plan, function=lambda: returned[0], validate=None, fast_path=None)
    fast, general = dataclasses.replace(bare, finish=finish), dataclasses.replace(bare, plain=None)
    with core_server.serving(core_server.server(fast=fast.handler(), general=general.handler())) as connect:
        wire = connect()
        wire.headers["MCP-Protocol-Version"] = LEGACY

        def call(name: str, value: Any) -> str:
            returned[0] = value
            return json.dumps(wire.ask("tools/call", {"name": name})["result"]).replace("general", "fast")

        yield partial(call, "fast"), partial(call, "general"), left


@pytest.mark.parametrize("annotation", PLAIN)
def test_fast_path_of_results_equals_the_general_path(annotation: Any) -> None:
    with paths(annotation) as (fast, general, left):
        assert_parity(fast, general, PLAIN[annotation])
        assert not left
        assert all("structuredContent" in fast(value) and "isError" not in fast(value) for value in PLAIN[annotation])


@pytest.mark.parametrize("annotation", OTHER)
def test_fast_path_of_results_leaves_other_values_to_python(annotation: Any) -> None:
    with paths(annotation) as (fast, general, left):
        assert_parity(fast, general, OTHER[annotation])
        assert len(left) == len(OTHER[annotation])


def test_an_annotation_with_more_to_say_is_held_to_it() -> None:
    plan = returning(Annotated[int, Field(ge=5)])
    assert plan.plain is None and plan.finish is not None
    with pytest.raises(ValidationError):
        plan.finish(3)
    text = returning(Annotated[str, Field(max_length=2)])
    assert text.output == "structured" and text.finish is not None
    with pytest.raises(ValidationError):
        text.finish("abc")


def test_what_pydantic_refuses_the_plain_way_reads() -> None:
    server = MCPServer("t")
    seen: list[bytes] = []

    @server.tool()
    def double(n: int) -> dict[str, int]:
        return {"result": n * 2}

    plan = tool_plan(server.__mcpace_core__, server.registry.tools["double"])
    assert plan.fast_path is not None and plan.plain == "dict[int]"

    def validate(raw: bytes) -> dict[str, Any]:
        seen.append(raw)
        return {"n": from_json(raw)["m"]}

    watched = core_server.server(double=dataclasses.replace(plan, validate=validate).handler())
    with core_server.serving(watched) as connect:
        wire = connect()
        wire.headers["MCP-Protocol-Version"] = LEGACY

        def of(**arguments: Any) -> Any:
            return wire.ask("tools/call", {"name": "double", "arguments": arguments})

        assert of(n=21)["result"]["structuredContent"] == {"result": 42}
        assert of(n="21")["result"]["structuredContent"] == {"result": 42}
        assert not seen
        assert of(n="x", m=4)["result"]["structuredContent"] == {"result": 8}
        assert len(seen) == 1
    with served(server) as port:
        text = Client(port).text("double", n="x")
    assert "Input should be a valid integer" in text


def test_what_else_a_validator_raises_is_the_calls_end() -> None:
    def fast(raw: bytes) -> dict[str, Any]:
        raise RuntimeError("no")

    def never(raw: bytes) -> dict[str, Any]:
        raise AssertionError("asked")

    handler = _core.Handler(
        lambda: "", validate=never, fast_path=fast, output="text", fail=lambda error: told(str(error))
    )
    with core_server.serving(core_server.server(tool=handler)) as connect:
        assert connect().ask("tools/call", {"name": "tool"})["result"]["content"][0]["text"] == "no"


def told(text: str) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}], "isError": True}).encode()


def test_text_that_could_be_a_list_gets_its_second_look() -> None:
    """A parameter that takes text and more: the validator alone would take ``"[1]"`` for text."""
    server = MCPServer("t")

    @server.tool()
    def tool(x: str | list[int]) -> str:
        return type(x).__name__

    assert tool_plan(server.__mcpace_core__, server.registry.tools["tool"]).fast_path is None
    with served(server) as port:
        assert Client(port).text("tool", x="[1]") == "list"


@pytest.mark.parametrize(
    "options",
    [
        {"fast_path": core_server.NOTHING},
        {"output": "structured", "plain": "dict"},
        {"output": "custom", "finish": lambda value: b"", "plain": "dict"},
        {"output": "structured", "finish": lambda value: b"", "plain": "list"},
    ],
)
def test_ways_without_the_one_behind_them_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        _core.Handler(lambda: None, **options)
