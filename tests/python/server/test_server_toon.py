"""TOON: the values that are written as TOON, those that stay JSON, and the equivalence of the two."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
import toon_format
from pydantic import BaseModel, Field

from mcpace import Image, MCPServer, RegistrationError, ToolError
from mcpace.types import CallToolResult, TextContent
from support.python_server import Client, served


class Item(BaseModel):
    sku: str
    count: int = Field(alias="n")


class Basket(BaseModel):
    items: list[Item]
    paid: bool = False


ITEMS = [Item(sku=f"s{number}", n=number) for number in range(4)]
WIRE = [{"sku": f"s{number}", "n": number} for number in range(4)]


def returning(value: Any, annotation: Any = ..., output_format: Any = "toon") -> MCPServer[Any]:
    server = MCPServer("t")

    def tool():
        return value

    if annotation is not ...:
        tool.__annotations__["return"] = annotation
    server.add_tool(tool, output_format=output_format)
    return server


def called(server: MCPServer[Any]) -> CallToolResult:
    result = asyncio.run(server.call_tool("tool", {}))
    assert isinstance(result, CallToolResult)
    return result


@pytest.mark.parametrize(
    ("value", "annotation", "data", "structured"),
    [
        (ITEMS, list[Item], WIRE, {"result": WIRE}),
        (Basket(items=ITEMS), Basket, {"items": WIRE, "paid": False}, {"items": WIRE, "paid": False}),
        ({"a": 1, "b": [1, 2]}, dict[str, Any], {"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]}),
        (["x", "y"], list[str], ["x", "y"], {"result": ["x", "y"]}),
        ({"a": "é\n,: x"}, ..., {"a": "é\n,: x"}, None),
        ([{"a": 1}], ..., [{"a": 1}], None),
    ],
)
def test_data_is_one_text_of_toon_that_says_what_the_structured_content_says(
    value: Any, annotation: Any, data: Any, structured: Any
) -> None:
    result = called(returning(value, annotation))
    [block] = result.content
    assert isinstance(block, TextContent)
    assert toon_format.loads(block.text) == data
    assert block.text == toon_format.dumps(data)
    assert result.structured_content == structured


def test_a_list_of_like_things_is_a_table() -> None:
    [block] = called(returning(ITEMS, list[Item])).content
    assert isinstance(block, TextContent)
    assert block.text == "[4]{sku,n}:\n  s0,0\n  s1,1\n  s2,2\n  s3,3"


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("plain, text: stays", str),
        ("plain, text: stays", ...),
        (5, int),
        (None, None),
        (TextContent(text="block"), TextContent),
        (["text", Image(data=b"x", format="png")], list[str | Image]),
        (CallToolResult(content=[TextContent(text="whole")], structured_content={"a": 1}), CallToolResult),
    ],
)
def test_what_is_no_data_stays_as_it_was(value: Any, annotation: Any) -> None:
    assert called(returning(value, annotation)) == called(returning(value, annotation, "json"))


def test_auto_takes_what_is_shorter() -> None:
    table = called(returning(ITEMS, list[Item], "auto"))
    assert table == called(returning(ITEMS, list[Item], "toon"))
    # Text that could be numbers is quoted, and a list has a head: here JSON, a block for each, is shorter.
    values = ["1", "2"]
    short = called(returning(values, list[str], "auto"))
    assert short == called(returning(values, list[str], "json"))
    assert len(toon_format.dumps(values)) > 2


def test_over_the_wire_it_is_the_same_text() -> None:
    server = returning(ITEMS, list[Item])
    with served(server) as port:
        result = Client(port).call("tool")
    assert result["content"] == [{"type": "text", "text": toon_format.dumps(WIRE)}]
    assert result["structuredContent"] == {"result": WIRE}


def test_a_value_that_isn_t_what_the_annotation_says_fails_as_with_json() -> None:
    with pytest.raises(ToolError):
        called(returning(["x"], list[Item]))


def test_without_the_package_registration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toon_format", None)
    with pytest.raises(
        RegistrationError, match=r"output_format='auto' of tool 'tool' needs toon-format: pip install 'mcpa"
    ):
        returning(1, output_format="auto")
    returning(1, output_format="json")


def test_a_format_that_there_isn_t_is_refused() -> None:
    with pytest.raises(RegistrationError, match="output_format='xml' of tool 'tool': there are json, toon and auto"):
        returning(1, output_format="xml")
