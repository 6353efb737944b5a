"""Tools within the process: their results, and their plans for the compiled part."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import math
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from pydantic_core import to_json
from typing_extensions import TypedDict

from mcpace import Context, Image, InvalidSignature, MCPError, MCPServer, RegistrationError, Resolve, ToolError
from mcpace.server.core.handlers import HandlerPlan, tool_plan
from mcpace.server.errors import InputRequired, UnexpectedToolError
from mcpace.server.registration.output import output_of
from mcpace.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations


class Point(BaseModel):
    x: int
    y: int = 0


class Typed(TypedDict):
    a: int
    b: int


def plan_of(function: Any, **options: Any) -> HandlerPlan:
    server = MCPServer("t")
    server.add_tool(function, **options)
    [tool] = server.registry.tools.values()
    return tool_plan(server.__mcpace_core__, tool)


# Plans for the compiled part -----------------------------------------------------------------------------------------


def test_a_plain_tool_is_handed_over_bare() -> None:
    def add(a: int, b: int) -> str:
        return f"{a + b}"

    plan = plan_of(add)
    assert plan.function is add
    assert (plan.kind, plan.output, plan.context, plan.wrap_context) == ("sync", "wrapped-text", None, None)
    assert plan.validate is not None
    assert plan.function(**plan.validate(b'{"a": "1", "b": 2}')) == "3"


def test_a_tool_without_parameters_has_nothing_to_validate() -> None:
    async def now() -> str:
        return "now"

    plan = plan_of(now, structured_output=False)
    assert (plan.validate, plan.kind, plan.output) == (None, "async", "text")


def test_a_context_is_wrapped_where_one_is_asked_for() -> None:
    def tool(x: int, ctx: Context[Any]) -> int:
        return x

    plan = plan_of(tool)
    assert plan.context == "ctx"
    assert plan.wrap_context is not None
    assert isinstance(plan.wrap_context(None), Context)


def ten() -> int:
    return 10


def test_a_tool_with_resolvers_is_wrapped() -> None:
    def tool(x: int, y: Annotated[int, Resolve(ten)]) -> int:
        return x + y

    plan = plan_of(tool)
    assert plan.function is not tool
    assert (plan.kind, plan.context) == ("async", "_context")


def test_data_is_written_twice_and_anything_else_whole() -> None:
    def tool() -> Point: ...

    plan = plan_of(tool)
    assert plan.output == "structured"
    assert plan.finish is not None
    assert plan.finish(Point(x=1)) == (b'{"x":1,"y":0}', True)
    # The text contains the returned value, the structured content the validated one.
    assert plan.finish({"x": 1}) == (b'{"x":1,"y":0}', b'{\n  "x": 1\n}')
    assert plan.finish({"x": 1, "y": 2}) == (b'{"x":1,"y":2}', True)
    assert plan.finish({"x": True, "y": 2}) == (b'{"x":1,"y":2}', b'{\n  "x": true,\n  "y": 2\n}')
    own = CallToolResult(content=[], is_error=True)
    assert json.loads(plan.finish(own)) == {"content": [], "isError": True}  # type: ignore[arg-type]
    unstructured = output_of(tool, structured=False)
    for other in (None, [1], "text", TextContent(text="t"), Image(data=b"x")):
        assert unstructured.data(other) == unstructured.finish(other)


@pytest.mark.parametrize(
    ("returned", "value", "data", "text"),
    [
        (int, 3, b'{"result":3}', b"3"),
        (bool, True, b'{"result":true}', b"true"),
        (float, 1, b'{"result":1.0}', b"1"),
        (int, True, b'{"result":1}', b"true"),
        (Typed, {"b": 2, "a": 1}, b'{"a":1,"b":2}', b'{\n  "b": 2,\n  "a": 1\n}'),
        (Typed, {"a": 1, "b": 2}, b'{"a":1,"b":2}', True),
        (dict[str, int], {"a": 1}, b'{"a":1}', True),
        (dict[str, float], {"a": 1}, b'{"a":1.0}', b'{\n  "a": 1\n}'),
        (dict[str, Any], {"a": math.inf}, b'{"a":null}', b'{\n  "a": Infinity\n}'),
        (Point | None, Point(x=1), b'{"result":{"x":1,"y":0}}', b'{\n  "x": 1,\n  "y": 0\n}'),
    ],
)
def test_the_text_is_the_value_s_and_the_data_what_the_annotation_makes_of_it(
    returned: Any, value: Any, data: bytes, text: Any
) -> None:
    output = returning(returned)
    assert output.kind == "structured"
    assert output.data(value) == (data, text)
    # A value of another kind takes the general path.
    own = CallToolResult(content=[], is_error=True)
    assert output.data(own) == output.finish(own)
    # A complete result has both.
    whole = json.loads(output.finish(value))
    assert whole["structuredContent"] == json.loads(data)
    shown = to_json(json.loads(data), indent=2) if text is True else text
    assert whole["content"] == [{"type": "text", "text": shown.decode()}]


# Results -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Size:
    width: int
    height: int = 2


def returning(annotation: Any) -> Any:
    def function(): ...

    function.__annotations__["return"] = annotation
    return output_of(function)


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (int, 5, {"result": 5}),
        (bool, True, {"result": True}),
        (float, 1.5, {"result": 1.5}),
        (str, "x", {"result": "x"}),
        (None, None, {"result": None}),
        (bytes, b"x", {"result": "x"}),
        (int, "5", {"result": 5}),
        (list[int], [1, 2], {"result": [1, 2]}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[int, str], {1: "a"}, {"result": {"1": "a"}}),
        (Point, Point(x=1), {"x": 1, "y": 0}),
        (Point, {"x": "1"}, {"x": 1, "y": 0}),
        (Size, Size(1), {"width": 1, "height": 2}),
        (Point | None, None, {"result": None}),
    ],
    ids=str,
)
def test_structured_content(annotation: Any, value: Any, structured: Any) -> None:
    output = returning(annotation)
    assert output.schema["type"] == "object"
    assert output.result(value).structured_content == structured
    written = json.loads(output.finish(value))
    assert written["structuredContent"] == structured
    assert written["content"] == [
        block.model_dump(by_alias=True, exclude_none=True) for block in output.result(value).content
    ]


@pytest.mark.parametrize(
    "annotation", [TextContent, Image, list[TextContent], list[Image] | None, CallToolResult, object]
)
def test_content_has_no_schema(annotation: Any) -> None:
    assert returning(annotation).schema is None


def test_a_value_that_is_not_what_the_annotation_says_fails() -> None:
    with pytest.raises(ValueError, match="valid integer"):
        returning(int).finish("many")


def test_a_whole_result_is_passed_on_and_its_structure_checked() -> None:
    output = returning(Annotated[CallToolResult, Point])
    good = CallToolResult(content=[], structured_content={"x": 1, "deep": {"none": None}})
    assert json.loads(output.finish(good))["structuredContent"] == {"x": 1, "deep": {"none": None}}
    with pytest.raises(ValueError, match="valid integer"):
        output.finish(CallToolResult(content=[], structured_content={"x": "no"}))
    assert json.loads(output.finish(CallToolResult(content=[], is_error=True)))["isError"] is True


def test_questions_end_the_round() -> None:
    result = InputRequiredResult(request_state="s")
    with pytest.raises(InputRequired):
        returning(str | InputRequiredResult).finish(result)
    assert returning(str | InputRequiredResult).schema["properties"]["result"]["type"] == "string"


def test_structure_is_demanded_or_refused() -> None:
    def bare(): ...
    def opaque() -> type: ...

    with pytest.raises(InvalidSignature, match="return annotation required"):
        output_of(bare, True)
    with pytest.raises(InvalidSignature, match="is not serializable for structured output"):
        output_of(opaque, True)

    def text() -> str: ...

    assert output_of(text, False).schema is None


def test_result_and_nothing_else_can_t_be_a_union() -> None:
    def tool() -> CallToolResult | None: ...

    with pytest.raises(InvalidSignature, match="CallToolResult cannot be used in Union"):
        output_of(tool)


# Failures ------------------------------------------------------------------------------------------------------------


def failing(error: Exception) -> Any:
    def tool() -> str:
        raise error

    plan = plan_of(tool)
    try:
        plan.function()
    except Exception as raised:
        return plan.fail(raised)


def text_of(answer: bytes) -> str:
    result = json.loads(answer)
    assert result["isError"] is True
    [block] = result["content"]
    return block["text"]


def test_what_was_raised_on_purpose_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpace.server"):
        assert text_of(failing(ToolError("no tea"))) == "Error executing tool tool: no tea"
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_a_crash_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mcpace.server"):
        assert text_of(failing(RuntimeError("secret"))) == "Error executing tool tool"
    assert "secret" in caplog.text
    assert caplog.records[0].levelname == "ERROR"


def test_a_validation_error_within_the_tool_is_a_crash() -> None:
    with pytest.raises(ValueError, match="valid integer") as raised:
        Point(x="no")
    assert text_of(failing(raised.value)) == "Error executing tool tool"


def test_arguments_that_don_t_fit_are_told_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def tool(x: int) -> str: ...

    plan = plan_of(tool)
    assert plan.validate is not None
    with caplog.at_level(logging.INFO, "mcpace.server"):
        with pytest.raises(ToolError) as refused:
            plan.validate(b'{"x": "secret"}')
        answer = plan.fail(refused.value)
    assert text_of(answer).startswith("Error executing tool tool: 1 validation error for toolArguments\nx\n")
    logged = [record.getMessage() for record in caplog.records]
    assert logged == ["Tool 'tool' rejected arguments: ['x']"]


def test_a_protocol_error_is_one() -> None:
    assert failing(MCPError(-32050, "no", {"why": 1})) == (-32050, "no", '{"why":1}')
    assert failing(MCPError(-32050, "no")) == (-32050, "no", None)


def test_questions_are_passed_on() -> None:
    asked = InputRequiredResult(input_requests={"q": {"method": "roots/list"}}, request_state="s")
    assert json.loads(failing(InputRequired(asked))) == {
        "resultType": "input_required",
        "inputRequests": {"q": {"method": "roots/list"}},
        "requestState": "s",
    }


def test_words_that_json_can_t_carry_are_told_all_the_same() -> None:
    assert text_of(failing(ToolError("\ud800!"))) == "Error executing tool tool: ?!"


# In this process -----------------------------------------------------------------------------------------------------


def test_call_tool_raises_what_went_wrong() -> None:
    server = MCPServer("t")

    @server.tool()
    def crash() -> str:
        raise RuntimeError("secret")

    async def call() -> None:
        with pytest.raises(UnexpectedToolError) as raised:
            await server.call_tool("crash", {})
        assert str(raised.value) == "Error executing tool crash"
        assert isinstance(raised.value.__cause__, RuntimeError)
        with pytest.raises(ToolError, match="Unknown tool: other"):
            await server.call_tool("other", {})

    asyncio.run(call())


def test_a_sync_tool_sees_context_variables_and_holds_up_nobody() -> None:
    from contextvars import ContextVar
    from threading import Event

    server, seen, go = MCPServer("t"), ContextVar("seen", default="nothing"), Event()

    @server.tool()
    def wait() -> str:
        assert go.wait(10)
        return seen.get()

    @server.tool()
    async def release() -> str:
        go.set()
        return "released"

    async def both() -> tuple[Any, Any]:
        seen.set("something")
        return await asyncio.gather(server.call_tool("wait"), server.call_tool("release"))

    waited, _ = asyncio.run(both())
    assert waited.structured_content == {"result": "something"}


def test_outside_of_a_request_a_context_says_so() -> None:
    server = MCPServer("t")

    @server.tool()
    def who(ctx: Context) -> str:
        return ctx.request_id

    with pytest.raises(UnexpectedToolError) as raised:
        asyncio.run(server.call_tool("who"))
    assert "outside of a request" in str(raised.value.__cause__)


def test_what_lists_show() -> None:
    server = MCPServer("t")

    @server.tool(
        name="n", title="T", description="d", annotations=ToolAnnotations(read_only_hint=True), meta={"a": None}
    )
    def tool(x: int) -> str: ...

    [entry] = asyncio.run(server.list_tools())
    assert (entry.name, entry.title, entry.description, entry.meta) == ("n", "T", "d", {"a": None})
    assert entry.annotations is not None
    assert entry.annotations.read_only_hint is True


# Registration --------------------------------------------------------------------------------------------------------


def test_the_second_tool_of_a_name_is_passed_over_and_said(caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("t")

    @server.tool(name="same")
    def first() -> str:
        return "first"

    @server.tool(name="same")
    def second() -> str:
        return "second"

    assert "Tool already exists: same" in caplog.text
    assert asyncio.run(server.call_tool("same")).structured_content == {"result": "first"}

    caplog.clear()
    quiet = MCPServer("t", warn_on_duplicate_tools=False)
    quiet.add_tool(first)
    quiet.add_tool(first)
    assert not caplog.text


def test_a_removed_tool_is_gone() -> None:
    server = MCPServer("t")
    server.add_tool(test_a_removed_tool_is_gone, name="x")
    server.remove_tool("x")
    assert asyncio.run(server.list_tools()) == []
    with pytest.raises(ToolError, match="Unknown tool: x"):
        server.remove_tool("x")


@pytest.mark.parametrize(
    ("name", "function"), [("with space", print), ("", lambda: 0), ("a" * 129, print), ("naïve", print)]
)
def test_names_that_are_none_are_refused(name: str, function: Any) -> None:
    with pytest.raises(RegistrationError, match=r"Tool name|name for lambda"):
        MCPServer("t").add_tool(function, name=name)


def test_a_decorator_without_its_parentheses_says_so() -> None:
    server = MCPServer("t")
    for decorator in (server.tool, server.prompt, server.resource):
        with pytest.raises(TypeError, match="was used incorrectly"):
            decorator(print)


def test_something_that_is_no_function_is_refused() -> None:
    with pytest.raises(RegistrationError, match="A tool is a function, not int 5"):
        MCPServer("t").add_tool(5)  # type: ignore[arg-type]
