"""The protocol's models, the official SDK's objects in mcpace's servers, and the types that type checkers see."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_serializer
from pydantic_core import to_json

from mcpace import types
from mcpace.server.registration.output import Output, output_of
from mcpace.types import (
    CallToolResult,
    EmbeddedResource,
    Icon,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
    wire,
)
from support import interop


def test_wire_names_are_the_protocol_s_and_nothing_is_told_that_isn_t_there() -> None:
    hints = ToolAnnotations(read_only_hint=True)
    assert wire(hints) == {"readOnlyHint": True}
    assert wire([Icon(src="x", mime_type="image/png")]) == [{"src": "x", "mimeType": "image/png"}]
    assert wire({"a": TextContent(text="t", _meta={"n": None})}) == {
        "a": {"type": "text", "text": "t", "_meta": {"n": None}}
    }
    assert wire("plain") == "plain"


def test_models_are_read_by_either_name() -> None:
    assert Icon.model_validate({"src": "x", "mimeType": "a"}) == Icon(src="x", mime_type="a")
    contents = EmbeddedResource.model_validate({"resource": {"uri": "a://b", "text": "t", "mimeType": "m"}}).resource
    assert contents == TextResourceContents(uri="a://b", text="t", mime_type="m")


def test_a_result_keeps_what_its_author_put_in() -> None:
    result = CallToolResult(content=[TextContent(text="t")], structured_content={"none": None})
    assert wire(result)["structuredContent"] == {"none": None}


def test_questions_must_ask_something() -> None:
    with pytest.raises(ValueError, match="at least one of input_requests or request_state"):
        types.InputRequiredResult()


def test_only_the_sdk_s_own_classes_count_as_its_own() -> None:
    class TextContent2:
        pass

    mine = type("TextContent", (), {"__module__": "my.code"})
    theirs = type("TextContent", (), {"__module__": "mcp_types._types"})
    derived = type("Derived", (theirs,), {"__module__": "my.code"})
    assert not types.is_content_type(mine)
    assert not types.is_content_type(TextContent2)
    assert types.is_content_type(theirs)
    assert types.is_content_type(derived)


@pytest.mark.network
def test_the_official_sdk_s_objects_are_taken() -> None:
    environment = {**os.environ, "PYTHONPATH": str(interop.ROOT / "python")}
    done = subprocess.run(
        [interop.official(), str(interop.ROOT / "tests" / "server" / "foreign.py")],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["block"] == {
        "content": [{"type": "text", "text": "block"}],
        "isError": False,
        "resultType": "complete",
    }
    picture = {"type": "image", "data": "cG5n", "mimeType": "image/png"}
    assert found["picture"]["content"] == [picture, {"type": "text", "text": "text"}]
    assert found["whole"]["structuredContent"] == {"x": 1}
    assert found["whole"]["_meta"] == {"m": 1}
    assert found["sdk_context"]["content"][0]["text"] == "mcpace.server.calls.context"
    assert found["deliberate"] == "ToolError: Error executing tool deliberate: on purpose"
    assert found["protocol"] == "mcp.shared.exceptions.MCPError: protocol"
    assert found["tools"][0]["annotations"] == {"readOnlyHint": True}
    assert found["tools"][0]["icons"] == [{"src": "data:,x"}]
    assert "outputSchema" not in found["tools"][1]
    assert found["gone"].endswith("ResourceNotFoundError: no x")
    assert found["text"] == ["words"]
    assert [message["content"]["type"] for message in found["prompt"]["messages"]] == ["text", "image"]
    assert [entry["content"][0]["type"] for entry in found["finished"]] == ["text", "image", "text"]
    assert found["finished"][2]["_meta"] == {"m": 1}


PROGRAM = """
from mcpace import AcceptedElicitation, Context, Image, MCPServer, Resolve
from mcpace.types import CallToolResult
from pydantic import BaseModel

class State: greeting = "hello"
class Form(BaseModel): seats: int

server: MCPServer[State] = MCPServer("typed")

@server.tool(title="T")
def add(a: int, b: int = 1) -> int:
    return a + b

@server.tool()
async def ask(ctx: Context[State]) -> str:
    answer = await ctx.elicit("How many?", Form)
    if isinstance(answer, AcceptedElicitation):
        reveal_type(answer.data.seats)
    reveal_type(ctx.request_context.lifespan_context)
    return ctx.lifespan_context.greeting

reveal_type(add)
add("one")
"""


def test_type_checkers_see_what_is_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", program.name]
    environment = {**os.environ, "MYPYPATH": str(interop.ROOT / "python")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=tmp_path
    )
    told = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert told == [
        'note: Revealed type is "int"',
        'note: Revealed type is "program.State"',
        'note: Revealed type is "def (a: int, b: int =) -> int"',
        'error: Argument 1 to "add" has incompatible type "str"; expected "int"  [arg-type]',
    ], done.stdout


class Plain(BaseModel):
    type: str = 'a "quoted" \\ é\n'
    fields: dict[str, list[float | None]] = {"empty": [], "all": [1e300, -0.0, float("nan"), float("inf"), None]}
    when: datetime.datetime = Field(datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC), alias="at")
    price: decimal.Decimal = decimal.Decimal("1.10")
    inner: Plain | None = None


def test_the_text_of_a_plain_model_is_its_structured_content() -> None:
    class Anything(BaseModel):
        value: Any = float("nan")

    class Called(BaseModel):
        value: int = 1

        @field_serializer("value")
        def loud(self, value: int) -> str:
            return "!" * value

    class More(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Holder(BaseModel):
        called: Called = Called()

    def returns(model: type[BaseModel]) -> Output:
        def tool() -> BaseModel: ...

        tool.__annotations__["return"] = model
        return output_of(tool)

    value = Plain(inner=Plain())
    plain = returns(Plain)
    # The compiled part determines the layout.
    assert plain.data(value) == (to_json(value, fallback=str), True)

    class Sub(Plain):
        more: int = 1

    for model in (Sub, Anything, Called, More, Holder):
        output = plain if model is Sub else returns(model)
        written = output.data(model())
        assert isinstance(written, tuple)
        if written[1] is True:
            assert written[0] == to_json(model(), fallback=str)
        else:
            assert written[1] == to_json(model(), indent=2, fallback=str)
