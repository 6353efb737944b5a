"""The compiled part of the Python server: requests of functions to their own request and to the client."""

from __future__ import annotations

import contextvars
import json
from typing import Any

import pytest

from mcpace import _core
from support.core_server import coroutine, server, serving, sync
from support.http_client import messages

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


def test_a_context_tells_of_its_request() -> None:
    def tell(ctx: _core.Context) -> str:
        info = json.loads(ctx.client_info or b"null")
        able = json.loads(ctx.client_capabilities or b"null")
        meta = json.loads(ctx.meta or b"null")
        told = [ctx.request_id, ctx.revision, ctx.method, info["name"], able, meta, ctx.headers["x-thing"]]
        return json.dumps([*told, ctx.session_id, ctx.principal, ctx.input_responses, ctx.request_state])

    with serving(server(tell=sync(tell, context="ctx")), stateless=False) as connect:
        wire = connect()
        wire.initialize(roots={})
        params = {"name": "tell", "_meta": {"progressToken": 5}}
        told = json.loads(wire.ask("tools/call", params, X_Thing="a")["result"]["content"][0]["text"])
        session = wire.headers["Mcp-Session-Id"]
        expected = [wire.last, "2025-11-25", "tools/call", "test", {"roots": {}}, {"progressToken": 5}, "a", session]
        assert told == [*expected, None, None, None]


def test_the_context_is_wrapped_within_the_calls_variables() -> None:
    def wrap(context: _core.Context) -> str:
        VARIABLE.set(f"request {context.request_id}")
        return "wrapped"

    with_keyword = sync(lambda ctx: f"{ctx} {VARIABLE.get()}", context="ctx", wrap_context=wrap)
    without = sync(VARIABLE.get, wrap_context=wrap)
    with serving(server(with_keyword=with_keyword, without=without)) as connect:
        wire = connect()
        assert wire.text("with_keyword") == "wrapped request 1"
        assert wire.text("without") == "request 2"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_progress_and_log_messages_go_ahead_of_the_result(kind: str) -> None:
    def say(ctx: _core.Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("info", "me", b'{"a": 1}')
        with pytest.raises(ValueError):
            ctx.log("loud", None, b"1")
        return "said"

    async def say_later(ctx: _core.Context) -> str:
        return say(ctx)

    tool = sync(say, context="ctx") if kind == "sync" else coroutine(say_later, context="ctx")
    with serving(server(say=tool)) as connect:
        wire = connect()
        answer = wire.ask("tools/call", {"name": "say", "_meta": {"progressToken": "p"}})
        assert answer["result"]["content"][0]["text"] == "said"
        methods = [message["method"] for message in wire.ahead]
        assert methods == ["notifications/progress", "notifications/message"]
        assert wire.ahead[0]["params"] == {"progressToken": "p", "progress": 1.0, "total": 2.0, "message": "half"}


async def elicit(ctx: _core.Context) -> str:
    return (await ctx.elicit(b'{"message": "?", "requestedSchema": {"type": "object", "properties": {}}}')).decode()


def test_a_question_travels_at_once_in_a_session() -> None:
    with serving(server(elicit=coroutine(elicit, context="ctx")), stateless=False, response="sse") as connect:
        wire, other = connect(), connect()
        wire.initialize(elicitation={})
        other.headers = wire.headers
        events = messages(wire.post("tools/call", {"name": "elicit"}))
        question = next(events)
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"a": 1}}}
        assert other.post_message(answer).read() == b""
        told = next(events)["result"]["content"][0]["text"]
        assert json.loads(told) == {"action": "accept", "content": {"a": 1}}


def modern(**capabilities: Any) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": capabilities}


def test_a_question_ends_the_round_since_2026_07_28() -> None:
    async def catches(ctx: _core.Context) -> str:
        try:
            return await elicit(ctx)
        except Exception:
            return "caught"

    with serving(server(ask=coroutine(catches, context="ctx"))) as connect:
        wire = connect()
        wire.headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
        params = {"name": "ask", "arguments": {}, "_meta": modern(elicitation={"form": {}})}
        asked = wire.ask("tools/call", params)["result"]
        assert asked["resultType"] == "input_required"
        answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
        params |= {"inputResponses": answers, "requestState": asked["requestState"]}
        assert json.loads(wire.ask("tools/call", params)["result"]["content"][0]["text"]) == {"action": "decline"}
        # A client that can't answer is told which capability is missing, although the function catches exceptions.
        params = {"name": "ask", "arguments": {}, "_meta": modern()}
        assert wire.ask("tools/call", params)["result"]["content"][0]["text"] == "caught"


def test_a_question_that_nobody_can_answer_is_a_problem_with_a_kind() -> None:
    async def kind(ctx: _core.Context) -> str:
        with pytest.raises(_core.AskProblem) as raised:
            await ctx.list_roots()
        return raised.value.kind

    with serving(server(kind=coroutine(kind, context="ctx"))) as connect:
        assert connect().text("kind") == "unreachable"
    with serving(server(kind=coroutine(kind, context="ctx")), stateless=False) as connect:
        wire = connect()
        wire.initialize()
        assert wire.text("kind") == "undeclared"


def test_questions_of_ones_own_and_their_state() -> None:
    class Questions(Exception):
        pass

    def ask(ctx: _core.Context) -> str:
        if ctx.request_state is None:
            raise Questions
        return f"{ctx.request_state} {json.loads(ctx.input_responses or b'{}')}"

    def answer(error: BaseException) -> str:
        assert isinstance(error, Questions)
        question = {"method": "roots/list"}
        return json.dumps({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "mine"})

    with serving(server(ask=sync(ask, context="ctx", fail=answer))) as connect:
        wire = connect()
        wire.headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
        params: dict[str, Any] = {"name": "ask", "arguments": {}, "_meta": modern(roots={})}
        asked = wire.ask("tools/call", params)["result"]
        assert asked["inputRequests"] == {"q": {"method": "roots/list"}}
        assert "mine" not in asked["requestState"]
        params |= {"inputResponses": {"q": {"roots": []}}, "requestState": asked["requestState"]}
        assert wire.ask("tools/call", params)["result"]["content"][0]["text"] == "mine {'q': {'roots': []}}"
