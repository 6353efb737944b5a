"""The compiled half of the Python face, over real sockets: where functions run, how they end, what they may ask."""

from __future__ import annotations

import asyncio
import contextvars
import http.client
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_core import SchemaValidator, core_schema

from mcpace import _core

LIMIT_S = 20
"""Of every wait."""

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


def arguments(**fields: Any) -> Callable[[bytes], dict[str, Any]]:
    shape = {name: core_schema.typed_dict_field(schema) for name, schema in fields.items()}
    return SchemaValidator(core_schema.typed_dict_schema(shape)).validate_json


TEXT = arguments(text=core_schema.str_schema())
NOTHING = arguments()


def listed(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}, **more}).encode()


def server(**tools: _core.Handler) -> _core.Server:
    made = _core.Server("test", "1")
    for name, handler in tools.items():
        made.add_tool(listed(name), handler)
    return made


class Wire:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.headers: dict[str, str] = {}
        self.last = 0

    def send(self, method: str, path: str = "/mcp", body: str | None = None, **headers: str) -> tuple[int, Any, bytes]:
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, {**self.headers, **own})
        reply = self.connection.getresponse()
        return reply.status, reply.headers, reply.read()

    def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        self.begin(method, params, **headers)
        return self.answer()

    def begin(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> int:
        self.last += 1
        body = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.connection.request("POST", "/mcp", json.dumps(body), {**accept, **self.headers, **own})
        return self.last

    def answer(self) -> dict[str, Any]:
        reply = self.connection.getresponse()
        self.reply_headers = reply.headers
        text = reply.read().decode()
        if reply.headers.get_content_type() == "text/event-stream":
            events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
            self.ahead = events[:-1]
            return events[-1]
        return json.loads(text)

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": tool, "arguments": given})
        assert "result" in answer, answer
        return answer["result"]

    def text(self, tool: str, **given: Any) -> str:
        return self.call(tool, **given)["content"][0]["text"]

    def initialize(self, **capabilities: Any) -> None:
        client = {"name": "wire", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
        assert "result" in self.ask("initialize", params)
        session = self.reply_headers["mcp-session-id"]
        self.headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}

    def notify(self, method: str, params: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.connection.request("POST", "/mcp", body, {**accept, **self.headers})
        assert self.connection.getresponse().read() == b""

    def close(self) -> None:
        self.connection.close()


@contextmanager
def serving(made: _core.Server, **options: Any) -> Iterator[Callable[[], Wire]]:
    running = made.serve_http(_core.HttpOptions(**{"port": 0, "stateless": True, **options}))
    wires: list[Wire] = []

    def connect() -> Wire:
        wires.append(Wire(running.port))
        return wires[-1]

    try:
        yield connect
    finally:
        for wire in wires:
            wire.close()
        running.stop()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"


def sync(function: Callable[..., Any], **how: Any) -> _core.Handler:
    return _core.Handler(function, **{"output": "text", **how})


def coroutine(function: Callable[..., Any], **how: Any) -> _core.Handler:
    return _core.Handler(function, **{"kind": "async", "output": "text", **how})


# Where functions run -------------------------------------------------------------------------------------------------


def test_a_quick_function_comes_to_run_inline_and_a_slow_call_sends_it_away() -> None:
    slow = threading.Event()

    def where() -> str:
        if slow.is_set():
            time.sleep(0.005)
        return str(threading.get_native_id())

    with serving(server(where=sync(where))) as connect:
        wire = connect()
        on_pool = wire.text("where")
        inline = on_pool

        def is_inline() -> bool:
            nonlocal inline
            inline = wire.text("where")
            return inline != on_pool

        eventually(is_inline)
        slow.set()
        eventually(lambda: wire.text("where") != inline)


def test_a_function_with_a_time_limit_is_never_inline() -> None:
    def where() -> str:
        # The name that the system has for the thread.
        return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text()

    made = server(free=sync(where))
    made.add_tool(listed("limited"), sync(where), timeout_s=LIMIT_S)
    with serving(made) as connect:
        wire = connect()
        eventually(lambda: wire.text("free").startswith("mcpace-http"))
        assert not any(wire.text("limited").startswith("mcpace-http") for _ in range(100))


def test_functions_that_wait_hold_up_nobody() -> None:
    release = threading.Event()
    waiting = threading.Semaphore(0)

    def wait() -> str:
        waiting.release()
        assert release.wait(LIMIT_S)
        return "waited"

    with serving(server(wait=sync(wait), echo=sync(lambda text: text, validate=TEXT))) as connect:
        wires = [connect() for _ in range(20)]
        for wire in wires:
            wire.begin("tools/call", {"name": "wait"})
        for _ in wires:
            assert waiting.acquire(timeout=LIMIT_S)
        assert connect().text("echo", text="meanwhile") == "meanwhile"
        release.set()
        assert all(wire.answer()["result"]["content"][0]["text"] == "waited" for wire in wires)


def test_more_calls_than_threads_wait_for_their_turn() -> None:
    made = _core.Server("test", "1", threads=2)
    running = 0
    most = 0
    lock = threading.Lock()

    def work() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return "done"

    made.add_tool(listed("work"), sync(work))
    with serving(made) as connect:
        wires = [connect() for _ in range(12)]
        for wire in wires:
            wire.begin("tools/call", {"name": "work"})
        assert all(wire.answer()["result"]["content"][0]["text"] == "done" for wire in wires)
    assert 1 <= most <= 2


def order_of_quick_and_slow() -> list[str]:
    release, began = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        ran.append("hold")
        return "held"

    def quick() -> str:
        ran.append("quick")
        return "quick"

    made = _core.Server("test", "1", threads=1)
    made.add_tool(listed("hold"), sync(hold))
    # With a limit it is never inline.
    made.add_tool(listed("quick"), sync(quick), timeout_s=LIMIT_S)
    with serving(made) as connect:
        wires = [connect() for _ in range(5)]
        for wire in wires:
            wire.ask("ping")
        *holding, last, other = wires
        last.text("quick")
        for wire in holding:
            wire.begin("tools/call", {"name": "hold"})
        assert began.wait(LIMIT_S)
        last.begin("tools/call", {"name": "quick"})
        other.ask("ping")
        release.set()
        for wire in [*holding, last]:
            wire.answer()
    return ran


def test_quick_functions_do_not_wait_behind_slow_ones() -> None:
    # Where the machine has other things to do, a quick call may look slow, now and then.
    eventually(lambda: order_of_quick_and_slow() == ["quick", "hold", "quick", "hold", "hold"])


def test_coroutines_run_side_by_side_on_one_loop() -> None:
    barrier: asyncio.Barrier | None = None
    loops = set()

    async def meet() -> str:
        nonlocal barrier
        loops.add((asyncio.get_running_loop(), threading.get_native_id()))
        barrier = barrier or asyncio.Barrier(5)
        task = asyncio.current_task()
        assert task is not None
        async with asyncio.timeout(LIMIT_S):
            await barrier.wait()
        return "met"

    made = server(meet=coroutine(meet))
    with serving(made) as connect:
        wires = [connect() for _ in range(5)]
        for wire in wires:
            wire.begin("tools/call", {"name": "meet"})
        assert all(wire.answer()["result"]["content"][0]["text"] == "met" for wire in wires)
    assert {loop for loop, _ in loops} == {made.event_loop()}
    assert len(loops) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_context_variables_come_from_whoever_serves_and_stay_within_the_call(kind: str) -> None:
    def change() -> str:
        before = VARIABLE.get()
        VARIABLE.set("leaked")
        return before

    async def change_later() -> str:
        return change()

    VARIABLE.set("outside")
    tool = sync(change) if kind == "sync" else coroutine(change_later)
    with serving(server(change=tool)) as connect:
        wire = connect()
        # Often enough to have it inline, too.
        assert {wire.text("change") for _ in range(200)} == {"outside"}


# How they end --------------------------------------------------------------------------------------------------------


def test_wrong_arguments_are_told_by_field() -> None:
    async def later(text: str) -> str:
        return text

    tools = server(echo=sync(lambda text: text, validate=TEXT), later=coroutine(later, validate=TEXT))
    with serving(tools) as connect:
        for tool in ("echo", "later"):
            result = connect().call(tool, text=3)
            assert result["isError"] is True
            assert "text\n" in result["content"][0]["text"]


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_is_raised_ends_one_call_and_is_told_to_the_log_alone(
    kind: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str) -> str:
        if text == "fail":
            raise error
        return text

    async def fail_later(text: str) -> str:
        await asyncio.sleep(0)
        return fail(text)

    tool = sync(fail, validate=TEXT) if kind == "sync" else coroutine(fail_later, validate=TEXT)
    with serving(server(tool=tool)) as connect, caplog.at_level(logging.ERROR, "mcpace.server"):
        wire = connect()
        for text in ["fail"] + ["fine"] * 100 + ["fail"]:
            result = wire.call("tool", text=text)
            expected = "internal error" if text == "fail" else text
            assert result["content"][0]["text"] == expected
    raised = [record for record in caplog.records if record.exc_info and record.exc_info[1] is error]
    assert len(raised) == 2


def test_a_failure_that_is_meant_for_the_client_is_told() -> None:
    class Told(Exception):
        __mcpace_told__ = True

    def fail() -> str:
        raise Told("try again")

    with serving(server(fail=sync(fail))) as connect:
        assert connect().call("fail") == {"content": [{"type": "text", "text": "try again"}], "isError": True}


def test_fail_answers_for_what_was_raised(caplog: pytest.LogCaptureFixture) -> None:
    def fail(text: str) -> str:
        raise ValueError(text)

    def answer(error: BaseException) -> Any:
        kind = str(error)
        if kind == "result":
            return json.dumps({"content": [{"type": "text", "text": "mine"}], "_meta": {"a": 1}})
        if kind == "protocol":
            return (-32001, "not so", '{"b": 2}')
        raise RuntimeError("fail fails")

    with serving(server(tool=sync(fail, validate=TEXT, fail=answer))) as connect:
        wire = connect()
        result = wire.call("tool", text="result")
        assert (result["content"][0]["text"], result["isError"], result["_meta"]) == ("mine", True, {"a": 1})
        refused = wire.ask("tools/call", {"name": "tool", "arguments": {"text": "protocol"}})
        assert refused["error"] == {"code": -32001, "message": "not so", "data": {"b": 2}}
        assert wire.call("tool", text="neither")["content"][0]["text"] == "internal error"
    assert "fail fails" in caplog.text


def test_a_call_that_takes_too_long_is_given_up() -> None:
    ended = threading.Event()

    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    held = threading.Event()
    made = _core.Server("test", "1")
    made.add_tool(listed("forever"), coroutine(forever), timeout_s=0.05)
    made.add_tool(listed("blocked"), sync(lambda: str(held.wait(LIMIT_S))), timeout_s=0.05)
    with serving(made) as connect:
        for tool in ("forever", "blocked"):
            result = connect().call(tool)
            assert result["isError"] is True
            assert "timed out after 0.05 seconds" in result["content"][0]["text"]
        assert ended.wait(LIMIT_S)
        held.set()


@pytest.mark.parametrize("how", ["notification", "gone"])
def test_a_client_that_takes_its_call_back_cancels_the_coroutine(how: str) -> None:
    began, ended = threading.Event(), threading.Event()

    async def forever() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
            raise
        return "never"

    with serving(server(forever=coroutine(forever)), stateless=False, response="json") as connect:
        wire = connect()
        wire.initialize()
        other = connect()
        other.headers = wire.headers
        number = wire.begin("tools/call", {"name": "forever"})
        assert began.wait(LIMIT_S)
        if how == "notification":
            other.notify("notifications/cancelled", {"requestId": number})
        else:
            wire.close()
        assert ended.wait(LIMIT_S)


def test_a_function_can_see_that_nobody_waits_any_more() -> None:
    began, seen = threading.Event(), threading.Event()

    def look(ctx: _core.Context) -> str:
        began.set()
        eventually(ctx.is_cancelled)
        seen.set()
        return "late"

    with serving(server(look=sync(look, context="ctx"))) as connect:
        wire = connect()
        wire.begin("tools/call", {"name": "look"})
        assert began.wait(LIMIT_S)
        wire.close()
        assert seen.wait(LIMIT_S)


# What they return ----------------------------------------------------------------------------------------------------


def test_values_become_results() -> None:
    def value(text: str) -> str:
        return text

    def finish(value: str) -> bytes:
        return json.dumps({"said": value}).encode()

    def whole(value: str) -> str:
        return json.dumps({"content": [], "structuredContent": {"a": 1}, "isError": True, "_meta": {"m": value}})

    tools = server(
        text=sync(value, validate=TEXT),
        wrapped=sync(value, validate=TEXT, output="wrapped-text"),
        structured=sync(value, validate=TEXT, output="structured", finish=finish),
        pretty=sync(value, validate=TEXT, output="structured", finish=finish, finish_text=str.upper),
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
        assert wire.call("pretty", text="x")["content"][0]["text"] == "X"
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


# What they may ask ---------------------------------------------------------------------------------------------------


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
        expected = [wire.last, "2025-11-25", "tools/call", "wire", {"roots": {}}, {"progressToken": 5}, "a", session]
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
        wire.begin("tools/call", {"name": "elicit"})
        reply = wire.connection.getresponse()
        events = (json.loads(line[6:]) for line in iter(reply.readline, b"") if line.startswith(b"data: {"))
        question = next(events)
        assert question["method"] == "elicitation/create"
        body = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"a": 1}}}
        accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        other.connection.request("POST", "/mcp", json.dumps(body), {**accept, **other.headers})
        assert other.connection.getresponse().read() == b""
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
        # Who can't answer is told what it would have to declare, though the function catches what it can.
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


# What is registered --------------------------------------------------------------------------------------------------


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
    for wrong in ({"kind": "later"}, {"output": "loud"}, {"output": "custom"}, {"output": "structured"}):
        with pytest.raises(ValueError):
            _core.Handler(str, **wrong)  # type: ignore[arg-type]


def test_tools_come_and_go_while_serving() -> None:
    async def later() -> str:
        return "later"

    made = server(first=sync(lambda: "first"))
    with serving(made) as connect:
        wire = connect()
        # The first coroutine of all starts the loop.
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


# How it is served ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "status"), [(None, 401), ("unknown", 401), ("old", 401), ("poor", 403), ("good", 200), ("crash", 503)]
)
def test_tokens_are_verified_by_a_coroutine(token: str | None, status: int) -> None:
    async def verify(token: str) -> SimpleNamespace | None:
        await asyncio.sleep(0)
        if token == "crash":
            raise RuntimeError
        if token == "unknown":
            return None
        expires_at = 1 if token == "old" else time.time() + 60
        return SimpleNamespace(client_id="me", scopes=["a"] if token != "poor" else [], expires_at=expires_at)

    who = sync(lambda ctx: ctx.principal.client_id, context="ctx")
    options = {"token_verifier": verify, "resource": "https://mcp.example/mcp", "required_scopes": ["a"]}
    with serving(server(who=who), **options) as connect:
        wire = connect()
        if token:
            wire.headers = {"Authorization": f"Bearer {token}"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who"}})
        accept = {"Content_Type": "application/json", "Accept": "application/json"}
        got, headers, reply = wire.send("POST", body=body, **accept)
        assert got == status
        assert ("WWW-Authenticate" in headers) == (status in (401, 403))
        if status == 200:
            assert json.loads(reply)["result"]["content"][0]["text"] == "me"


def test_a_verifier_that_never_answers_is_given_up() -> None:
    async def never(token: str) -> None:
        await asyncio.Event().wait()

    options = {"token_verifier": never, "resource": "https://mcp.example/mcp", "token_timeout_s": 0.05}
    with serving(server(), **options) as connect:
        assert connect().send("GET", Authorization="Bearer x")[0] == 503


async def mirror(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application that says what it was sent, and fails where it is told to."""
    if scope["path"] == "/crash":
        raise RuntimeError("on purpose")
    body = b""
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 201, "headers": [(b"x-path", scope["raw_path"])]})
    if scope["path"] == "/half":
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("on purpose")
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": scope["query_string"]})


def test_other_paths_go_to_an_asgi_application(caplog: pytest.LogCaptureFixture) -> None:
    with serving(server(), asgi=mirror, limits={"body": 300_000}) as connect:
        wire = connect()
        sent = "z" * 200_000
        status, headers, body = wire.send("POST", "/a%20b?q=1", sent)
        assert (status, headers["x-path"], body) == (201, "/a%20b", sent.encode() + b"q=1")
        assert wire.send("POST", "/long", "z" * 300_001)[0] == 413
        assert connect().send("GET", "/crash")[0] == 500
        assert connect().send("GET", "/x", Host="evil.example")[0] == 403
        assert connect().send("GET", "/mcp")[0] == 405
        assert "on purpose" in caplog.text


def test_an_asgi_application_learns_that_its_client_went() -> None:
    began, ended = threading.Event(), threading.Event()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        began.set()
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    with serving(server(), asgi=stream) as connect:
        wire = connect()
        wire.connection.request("GET", "/stream")
        assert began.wait(LIMIT_S)
        wire.connection.getresponse()
        wire.close()
        assert ended.wait(LIMIT_S)


def test_an_endpoint_is_asked_without_a_socket() -> None:
    async def slow(ctx: _core.Context) -> str:
        ctx.progress(1, None, None)
        return "slow"

    made = server(slow=coroutine(slow, context="ctx"))

    async def ask() -> tuple[int, bytes]:
        endpoint = made.endpoint(_core.HttpOptions(stateless=True, response="sse"))
        accept = b"application/json, text/event-stream"
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", accept)]
        params = {"name": "slow", "_meta": {"progressToken": 1}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = await endpoint.call("POST", "/mcp", headers, json.dumps(message).encode())
        pieces = b""
        while (piece := await reply.next()) is not None:
            pieces += piece
        with pytest.raises(ValueError):
            await endpoint.call("PO ST", "/mcp", [], b"")
        return reply.status, pieces

    status, body = asyncio.run(asyncio.wait_for(ask(), LIMIT_S))
    assert status == 200
    assert body.index(b"notifications/progress") < body.index(b'"slow"')


def test_a_call_without_a_socket_is_cancelled_with_its_awaitable() -> None:
    began, ended = threading.Event(), threading.Event()

    async def forever() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    made = server(forever=coroutine(forever))

    async def ask() -> None:
        endpoint = made.endpoint(_core.HttpOptions(stateless=True, response="json"))
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "forever"}}
        asking = asyncio.ensure_future(endpoint.call("POST", "/mcp", headers, json.dumps(message).encode()))
        assert await asyncio.to_thread(began.wait, LIMIT_S)
        asking.cancel()
        assert await asyncio.to_thread(ended.wait, LIMIT_S)

    asyncio.run(ask())


def test_options_that_cant_be_are_refused() -> None:
    for wrong in (
        {"host": "example.com"},
        {"response": "loud"},
        {"grace_s": -1},
        {"limits": {"nothing": 1}},
        {"limits": {"body": 1.5}},
        {"tls": (b"x", b"y")},
        {"token_verifier": mirror, "port": 0},
    ):
        with pytest.raises(_core.UsageProblem):
            _core.HttpOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(_core.UsageProblem):
        server().serve_http(_core.HttpOptions(port=0, path="mcp"))


def test_stopping_lets_calls_finish_and_twice_does_nothing() -> None:
    began, release = threading.Event(), threading.Event()

    def wait() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        return "finished"

    running = server(wait=sync(wait)).serve_http(_core.HttpOptions(port=0, stateless=True))
    wire = Wire(running.port)
    wire.begin("tools/call", {"name": "wait"})
    assert began.wait(LIMIT_S)
    stopped: list[int] = []
    stopping = threading.Thread(target=lambda: stopped.append(running.stop()))
    stopping.start()
    release.set()
    assert wire.answer()["result"]["content"][0]["text"] == "finished"
    stopping.join(LIMIT_S)
    assert stopped == [0]
    assert running.stop() == 0
    running.wait()


PROGRAM = """
import asyncio, json, sys, threading, time
from mcpace import _core

async def forever():
    await asyncio.Event().wait()

def block():
    time.sleep(0.2)
    return "blocked"

made = _core.Server("test", "1")
listed = lambda name: json.dumps({"name": name, "inputSchema": {"type": "object"}})
made.add_tool(listed("forever"), _core.Handler(forever, kind="async", output="text"))
made.add_tool(listed("block"), _core.Handler(block, output="text"))
"""


def program(more: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM + more], text=True, stderr=subprocess.PIPE, **how)


def test_a_process_ends_cleanly_though_nothing_was_stopped() -> None:
    more = """
import http.client
running = made.serve_http(_core.HttpOptions(port=0, stateless=True, grace_s=0.1))
for tool in ("forever", "block"):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}})
    connection = http.client.HTTPConnection("127.0.0.1", running.port)
    connection.request("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "application/json"})
    globals()[tool] = connection
time.sleep(0.05)
"""
    ended = program(more)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (0, "")


def test_a_forked_child_ends_by_itself() -> None:
    more = """
import os
running = made.serve_http(_core.HttpOptions(port=0))
made.event_loop()
child = os.fork()
if child == 0:
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
"""
    ended = program(more)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (0, "")


def test_a_signal_ends_waiting() -> None:
    more = """
running = made.serve_http(_core.HttpOptions(port=0))
try:
    print("ready", flush=True)
    running.wait()
except KeyboardInterrupt:
    running.stop()
    sys.exit(7)
"""
    ended = program(more, stdout=subprocess.PIPE)
    assert ended.stdout is not None
    assert ended.stdout.readline() == "ready\n"
    ended.send_signal(signal.SIGINT)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (7, "")


def test_a_signal_ends_stdio() -> None:
    more = """
try:
    print("ready", file=sys.stderr, flush=True)
    made.serve_stdio()
except KeyboardInterrupt:
    sys.exit(7)
"""
    ended = program(more, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert ended.stderr is not None
    assert ended.stdin is not None
    assert ended.stdout is not None
    assert ended.stderr.readline() == "ready\n"
    ended.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    ended.stdin.flush()
    assert json.loads(ended.stdout.readline())["id"] == 1
    ended.send_signal(signal.SIGINT)
    assert ended.wait(LIMIT_S) == 7
    assert ended.stderr.read() == ""
    ended.communicate()


def test_stdio_serves_until_its_input_ends() -> None:
    ended = program("made.serve_stdio()", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "block"}},
    ]
    sent = "".join(json.dumps(message) + "\n" for message in messages)
    out, errors = ended.communicate(sent, timeout=LIMIT_S)
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, out.splitlines())}
    assert replies[1]["serverInfo"]["name"] == "test"
    assert replies[2]["content"][0]["text"] == "blocked"
    assert (ended.returncode, errors) == (0, "")
