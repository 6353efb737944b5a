"""The compiled part of the Python server: registration, and conversion of returned values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpace import _core
from support.core_server import TEXT, coroutine, listed, server, serving, sync


def test_what_cant_be_registered_is_said_in_a_sentence() -> None:
    made = server(echo=sync(str))
    handler = sync(str)
    for description, said in [
        (listed("echo"), 'tool "echo" is there twice'),
        (listed("a b"), "not a name"),
        (b'{"name": "x"}', "missing field `inputSchema`"),
        (b'{"name": "x", "inputSchema": {"type": "string"}}', "not an object's"),
        (b"{", "can't be read"),
    ]:
        with pytest.raises(_core.RegistrationProblem, match=said):
            made.add_tool(description, handler)
    with pytest.raises(_core.RegistrationProblem, match="brace"):
        made.add_resource_template(json.dumps({"uriTemplate": "a://{b", "name": "b"}), handler)
    assert made.remove_tool("echo") is True
    assert made.remove_tool("echo") is False
    made.add_tool(listed("echo"), handler)


def test_a_handler_that_cant_be_is_refused() -> None:
    for wrong in ({"kind": "later"}, {"output": "loud"}, {"output": "custom"}):
        with pytest.raises(ValueError):
            _core.Handler(str, **wrong)  # type: ignore[arg-type]


def test_tools_come_and_go_while_serving() -> None:
    async def later() -> str:
        return "later"

    made = server(first=sync(lambda: "first"))
    with serving(made) as connect:
        wire = connect()
        # The first coroutine starts the loop.
        made.add_tool(listed("later"), coroutine(later))
        names = {tool["name"] for tool in wire.ask("tools/list")["result"]["tools"]}
        assert names == {"first", "later"}
        assert wire.text("later") == "later"
        assert made.remove_tool("first")
        assert wire.ask("tools/call", {"name": "first"})["error"]["code"] == -32602


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_resources_prompts_and_completions(kind: str) -> None:
    def handler(function: Callable[..., Any]) -> _core.Handler:
        async def later(**keywords: Any) -> Any:
            return function(**keywords)

        chosen = function if kind == "sync" else later
        return _core.Handler(chosen, kind=kind, validate=json.loads, output="custom", finish=json.dumps)  # type: ignore[arg-type]

    def message(**keywords: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": json.dumps(keywords)}}]}

    made = _core.Server("test", "1")
    fixed = {"uri": "a://b", "name": "b", "mimeType": "text/x"}
    made.add_resource(json.dumps(fixed), handler(lambda: {"contents": [{"text": "hi"}]}))
    family = {"uriTemplate": "t://{x}/{y}", "name": "t"}
    made.add_resource_template(json.dumps(family), handler(lambda x, y: {"contents": [{"text": x + y}]}))
    made.add_prompt(json.dumps({"name": "p"}), handler(message))
    made.set_completer(handler(lambda **about: {"values": [about["ref"]["name"], about["argument"]["value"]]}))
    with serving(made) as connect:
        wire = connect()
        contents = wire.ask("resources/read", {"uri": "a://b"})["result"]["contents"]
        assert contents == [{"uri": "a://b", "mimeType": "text/x", "text": "hi"}]
        contents = wire.ask("resources/read", {"uri": "t://1/2%203"})["result"]["contents"]
        assert contents == [{"uri": "t://1/2%203", "text": "12 3"}]
        messages = wire.ask("prompts/get", {"name": "p", "arguments": {"a": "b"}})["result"]["messages"]
        assert messages[0]["content"]["text"] == '{"a": "b"}'
        about = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
        assert wire.ask("completion/complete", about)["result"]["completion"]["values"] == ["p", "v"]


def test_a_resource_that_fails_is_an_error_of_the_protocol() -> None:
    made = _core.Server("test", "1")

    def answer(error: BaseException) -> tuple[int, str, str]:
        return (-32002, str(error), '{"uri": "a://b"}')

    def missing() -> str:
        raise LookupError("nothing there")

    made.add_resource(b'{"uri": "a://b", "name": "b"}', _core.Handler(missing, output="finished", fail=answer))
    with serving(made) as connect:
        error = connect().ask("resources/read", {"uri": "a://b"})["error"]
        assert error == {"code": -32002, "message": "nothing there", "data": {"uri": "a://b"}}


def test_values_become_results() -> None:
    def value(text: str) -> str:
        return text

    def finish(value: str) -> tuple[bytes, Any]:
        said = json.dumps({"said": value})
        return said.encode(), {"x": said, "y": True}.get(value, value.upper().encode())

    def whole(value: str) -> str:
        return json.dumps({"content": [], "structuredContent": {"a": 1}, "isError": True, "_meta": {"m": value}})

    tools = server(
        text=sync(value, validate=TEXT),
        wrapped=sync(value, validate=TEXT, output="wrapped-text"),
        structured=sync(value, validate=TEXT, output="structured", finish=finish),
        itself=sync(finish, validate=lambda raw: {"value": json.loads(raw)["text"]}, output="structured"),
        whole=sync(value, validate=TEXT, output="structured", finish=whole),
        custom=sync(value, validate=TEXT, output="custom", finish=whole),
        finished=sync(lambda text: whole(text), validate=TEXT, output="finished"),
    )
    block = {"type": "text", "text": 'é "\n'}
    with serving(tools) as connect:
        wire = connect()
        wire.headers = {"MCP-Protocol-Version": "2025-11-25"}
        assert wire.call("text", text='é "\n') == {"content": [block]}
        assert wire.call("wrapped", text='é "\n') == {"content": [block], "structuredContent": {"result": 'é "\n'}}
        assert wire.call("structured", text="x") == {
            "content": [{"type": "text", "text": '{"said": "x"}'}],
            "structuredContent": {"said": "x"},
        }
        assert wire.call("structured", text="y")["content"][0]["text"] == '{\n  "said": "y"\n}'
        assert wire.call("structured", text="z")["content"][0]["text"] == "Z"
        assert wire.call("itself", text="z") == {
            "content": [{"type": "text", "text": "Z"}],
            "structuredContent": {"said": "z"},
        }
        assert wire.call("whole", text="m")["structuredContent"] == {"a": 1}
        for tool in ("custom", "finished"):
            expected = {"content": [], "structuredContent": {"a": 1}, "isError": True, "_meta": {"m": "x"}}
            assert wire.call(tool, text="x") == expected


def test_a_value_that_is_no_text_is_an_error_unless_something_finishes_it(caplog: pytest.LogCaptureFixture) -> None:
    tools = server(
        wrong=sync(lambda: 3),
        finished=sync(lambda: 3, finish=lambda value: json.dumps({"content": [{"type": "text", "text": str(value)}]})),
        garbage=sync(lambda: "[", output="finished"),
        surrogate=sync(lambda: "\ud800"),
    )
    with serving(tools) as connect:
        wire = connect()
        assert wire.call("wrong")["isError"] is True
        assert "returned int, not str" in caplog.text
        assert wire.text("finished") == "3"
        assert wire.call("garbage")["isError"] is True
        assert wire.call("surrogate")["isError"] is True
        assert wire.text("finished") == "3"
