"""The compiled part of the Python server: ends of calls by errors, limits and cancellation."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import pytest

from mcpace import _core
from support.core_server import LIMIT_S, TEXT, coroutine, eventually, listed, server, serving, sync


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
