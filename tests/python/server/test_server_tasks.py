"""Tools that run as tasks (2026-07-28, ``io.modelcontextprotocol/tasks``), over the wire and in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from mcpace import (
    AccessToken,
    AuthSettings,
    Context,
    Elicit,
    MCPError,
    MCPServer,
    RegistrationError,
    Resolve,
    TaskConfig,
    ToolError,
)
from mcpace.testing import connect
from mcpace.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from support.http_client import LIMIT_S
from support.python_server import Client, served

ABLE = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
QUICK = TaskConfig(poll_interval=timedelta(milliseconds=10))


class Name(BaseModel):
    name: str


async def named() -> Elicit[Name]:
    return Elicit("Who?", Name)


class Verifier:
    """The token is the caller's name."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="c", subject=token, scopes=[])


SETTINGS = AuthSettings(
    issuer_url="https://auth.example",  # type: ignore[arg-type]
    resource_server_url="https://mcp.example/mcp",  # type: ignore[arg-type]
    validate_token_resource=False,
)


def able(port: int, **options: Any) -> Client:
    return Client(port, capabilities=ABLE, **options)


def begun(client: Client, tool: str, /, **arguments: Any) -> str:
    """The id of the task of a call."""
    result = client.call(tool, **arguments)
    assert result["resultType"] == "task" and result["status"] == "working", result
    task_id: str = result["taskId"]
    return task_id


def until(client: Client, task_id: str, *wanted: str) -> dict[str, Any]:
    """Polls a task, as the protocol intends, until it has one of these statuses."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        task: dict[str, Any] = client.request("tasks/get", {"taskId": task_id})["result"]
        if task["status"] in wanted:
            return task
    raise AssertionError(f"the task is still {task}")


def text(task: dict[str, Any]) -> str:
    said: str = task["result"]["content"][0]["text"]
    return said


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


async def elicitation(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


# Over the wire -------------------------------------------------------------------------------------------------------


def test_sync_and_async_functions_run_as_tasks_and_as_calls() -> None:
    server = MCPServer("t")
    config = TaskConfig(poll_interval=timedelta(seconds=2), ttl=timedelta(minutes=1))

    @server.tool(task=config)
    def plain(n: int, ctx: Context) -> dict[str, Any]:
        return {"n": n, "task": ctx.task_id, "is_task": ctx.is_background_task}

    @server.tool(task=True)
    async def later(n: int) -> str:
        return f"{n} later"

    @server.tool()
    async def never() -> str:
        return "never"

    with served(server) as port:
        client = able(port)
        extensions = client.request("server/discover")["result"]["capabilities"]["extensions"]
        assert extensions == {"io.modelcontextprotocol/tasks": {}}
        created = client.call("plain", n=1)
        assert (created["pollIntervalMs"], created["ttlMs"]) == (2_000, 60_000)
        done = until(client, created["taskId"], "completed")
        assert done["result"]["structuredContent"] == {"n": 1, "task": created["taskId"], "is_task": True}
        assert text(until(client, begun(client, "later", n=2), "completed")) == "2 later"
        assert "1 validation error" in text(until(client, begun(client, "later", n="x"), "completed"))
        assert client.text("never") == "never"
        without = Client(port)
        assert without.call("plain", n=3)["structuredContent"] == {"n": 3, "task": None, "is_task": False}
        assert without.text("later", n=4) == "4 later"
        assert without.request("tasks/get", {"taskId": created["taskId"]})["error"]["code"] == -32021
        legacy = Client(port, capabilities=ABLE)
        legacy.begin()
        assert legacy.text("later", n=5) == "5 later"


def test_a_task_ends_as_its_call_would() -> None:
    server = MCPServer("t", tool_timeout=0.05)

    @server.tool(task=True)
    async def fails() -> None:
        raise ToolError("on purpose")

    @server.tool(task=True)
    async def crashes() -> None:
        raise RuntimeError("secret")

    @server.tool(task=True)
    async def refuses() -> None:
        raise MCPError(-32_000, "not now", {"why": 1})

    @server.tool(task=True)
    async def hangs() -> None:
        await asyncio.Event().wait()

    @server.tool(task=True, max_result_bytes=50)
    async def long() -> str:
        return "x" * 100

    expected = {
        "fails": "on purpose",
        "hangs": "timed out after 0.05 seconds",
        "long": "the result is too long",
        "crashes": "Error executing tool crashes",
    }
    with served(server) as port:
        client = able(port)
        for tool, words in expected.items():
            task = until(client, begun(client, tool), "completed", "failed")
            assert task["status"] == "completed" and task["result"]["isError"] is True, task
            assert words in text(task) and "secret" not in text(task)
        task = until(client, begun(client, "refuses"), "completed", "failed")
        assert (task["status"], task["error"]) == (
            "failed",
            {"code": -32_000, "message": "not now", "data": {"why": 1}},
        )


@pytest.mark.parametrize("how", ["cancelled", "expired", "stopped"])
def test_work_learns_that_its_task_is_over(how: str) -> None:
    server = MCPServer("t")
    ttl = timedelta(seconds=0.2 if how == "expired" else 900)
    started, ended = threading.Barrier(3), [threading.Event(), threading.Event()]

    @server.tool(task=TaskConfig(ttl=ttl))
    async def waits() -> None:
        try:
            await asyncio.to_thread(started.wait, LIMIT_S)
            await asyncio.Event().wait()
        finally:
            ended[0].set()

    @server.tool(task=TaskConfig(ttl=ttl))
    def looks(ctx: Context) -> None:
        started.wait(LIMIT_S)
        while not ctx.is_cancelled():
            time.sleep(0.001)
        ended[1].set()

    with served(server) as port:
        client = able(port)
        tasks = [begun(client, "waits"), begun(client, "looks")]
        started.wait(LIMIT_S)
        if how == "cancelled":
            for task in tasks:
                assert client.request("tasks/cancel", {"taskId": task})["result"]["resultType"] == "complete"
                assert until(client, task, "cancelled").get("result") is None
        if how != "stopped":
            assert all(one.wait(LIMIT_S) for one in ended)
        if how == "expired":
            assert client.request("tasks/get", {"taskId": tasks[0]})["error"]["code"] == -32602
    assert all(one.wait(LIMIT_S) for one in ended)


def test_progress_is_the_status_message() -> None:
    server = MCPServer("t")
    go = threading.Event()

    @server.tool(task=True)
    async def build(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "compiling")
        await asyncio.to_thread(go.wait, LIMIT_S)
        return "built"

    with served(server) as port:
        client = able(port)
        task_id = begun(client, "build")
        deadline = time.monotonic() + LIMIT_S
        while (task := until(client, task_id, "working")).get("statusMessage") != "compiling":
            assert time.monotonic() < deadline, task
        go.set()
        assert "statusMessage" not in until(client, task_id, "completed")


def test_questions_are_the_tasks() -> None:
    server = MCPServer("t")
    runs: list[str] = []

    @server.tool(task=True)
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return answer.data.name if answer.action == "accept" else answer.action

    @server.tool(task=True)
    async def returns(greeting: str, ctx: Context) -> str | InputRequiredResult:
        runs.append(ctx.task_id or "")
        answer = (ctx.input_responses or {}).get("who")
        if isinstance(answer, ElicitResult) and answer.content:
            return f"{greeting}, {answer.content['name']} ({ctx.request_state})"
        ask = ElicitRequestFormParams(message="Who?", requested_schema={"type": "object", "properties": {}})
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=ask)}, request_state="first")

    @server.tool(task=True)
    async def resolves(who: Annotated[Name, Resolve(named)]) -> str:
        return who.name

    expected = {"asks": "Ada", "returns": "Hello, Ada (first)", "resolves": "Ada"}
    with served(server) as port:
        client = able(port)
        for tool, words in expected.items():
            task_id = begun(client, tool, **({"greeting": "Hello"} if tool == "returns" else {}))
            task = until(client, task_id, "input_required", "completed", "failed")
            assert task["status"] == "input_required", task
            answers = {key: {"action": "accept", "content": {"name": "Ada"}} for key in task["inputRequests"]}
            client.request("tasks/update", {"taskId": task_id, "inputResponses": answers})
            assert text(until(client, task_id, "completed", "failed", "input_required")) == words
    assert len(runs) == 2 and runs[0] == runs[1] != ""


def test_a_function_becomes_a_task_when_it_wants_to() -> None:
    server = MCPServer("t")

    @server.tool(task=TaskConfig(mode="on-demand"))
    async def work(ctx: Context, required: bool) -> str:
        before = ctx.is_background_task
        is_task = await ctx.begin_task(required=required)
        assert await ctx.begin_task(required=required) == is_task
        return f"{before} {is_task} {ctx.is_background_task}"

    @server.tool(task=TaskConfig(mode="on-demand"))
    async def asks_first(ctx: Context) -> str:
        first = await ctx.elicit("Who?", Name)
        await ctx.begin_task()
        second = await ctx.elicit("And who?", Name)
        return f"{first.data.name} and {second.data.name}"  # type: ignore[union-attr]

    with served(server) as port:
        client = able(port, answers={"elicitation/create": lambda _: {"action": "accept", "content": {"name": "Ada"}}})
        assert text(until(client, begun(client, "work", required=True), "completed")) == "False True True"
        without = Client(port)
        refused = without.call("work", required=True)
        assert (refused["error"]["code"], without.status) == (-32021, 400)
        assert without.text("work", required=False) == "False False False"
        task_id = begun(client, "asks_first")
        asked = until(client, task_id, "input_required")
        answers = {key: {"action": "accept", "content": {"name": "Bo"}} for key in asked["inputRequests"]}
        client.request("tasks/update", {"taskId": task_id, "inputResponses": answers})
        assert text(until(client, task_id, "completed")) == "Ada and Bo"


def test_a_tool_that_needs_tasks_refuses_other_clients() -> None:
    server = MCPServer("t")

    @server.tool(task=TaskConfig(mode="required"))
    async def work() -> str:
        return "done"

    with served(server) as port:
        assert text(until(able(port), begun(able(port), "work"), "completed")) == "done"
        client = Client(port)
        refused = client.call("work")
        assert (refused["error"]["code"], client.status) == (-32021, 400)
        assert refused["error"]["data"] == {
            "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        }
        legacy = Client(port, capabilities=ABLE)
        legacy.begin()
        assert legacy.call("work")["isError"] is True


def test_guards_come_before_the_task_and_tasks_belong_to_their_caller() -> None:
    server = MCPServer("t", token_verifier=Verifier(), auth=SETTINGS, max_tasks=20)
    count = 0

    async def not_eve(asked: Any) -> bool:
        return asked.principal.subject != "eve"

    @server.tool(task=True, permissions=not_eve, rate_limits="11/hour")
    async def work(ctx: Context) -> None:
        nonlocal count
        count += 1
        await asyncio.Event().wait()

    def of(port: int, who: str) -> Client:
        return able(port, headers={"Authorization": f"Bearer {who}"})

    with served(server) as port:
        eve, ada, bob = of(port, "eve"), of(port, "ada"), of(port, "bob")
        assert eve.call("work")["error"]["code"] == -32003 or eve.status == 403
        task_id = begun(ada, "work")
        for method in ("tasks/get", "tasks/cancel"):
            assert bob.request(method, {"taskId": task_id})["error"]["message"] == "unknown task"
        assert until(ada, task_id, "working")["taskId"] == task_id
        for _ in range(9):
            begun(ada, "work")
        # Half of the capacity for tasks is in use, and ada has more than a tenth of it.
        assert ada.call("work")["error"]["message"] == "the server has too many tasks"
        begun(bob, "work")
        # The refused one counted as a use, as a failed call does.
        assert of(port, "ada").call("work")["error"]["code"] != -32603
    assert count == 11


def test_middleware_and_extensions_are_around_tasks_too() -> None:
    seen: list[str] = []

    async def watch(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server = MCPServer("t", middleware=[watch])

    @server.tool(task=True)
    def work() -> str:
        return "done"

    with served(server) as port:
        client = able(port)
        assert text(until(client, begun(client, "work"), "completed")) == "done"
    assert seen == ["tools/call"]


# A client in memory --------------------------------------------------------------------------------------------------


def test_a_client_in_memory_follows_tasks() -> None:
    server = MCPServer("t")

    @server.tool(task=QUICK)
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return f"{answer.data.name} {ctx.is_background_task}"  # type: ignore[union-attr]

    async def work() -> None:
        async with connect(server, tasks=True, elicitation_callback=elicitation) as client:
            result = await client.call_tool("asks")
            assert result.content[0].text == "Ada True"  # type: ignore[union-attr]

    run(work())


def test_the_tasks_of_a_client_in_memory_end_with_it() -> None:
    server = MCPServer("t")
    started, ended = threading.Event(), threading.Event()

    @server.tool(task=QUICK)
    async def waits() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def work() -> None:
        async with connect(server, tasks=True) as client:
            call = asyncio.ensure_future(client.call_tool("waits"))
            assert await asyncio.to_thread(started.wait, LIMIT_S)
            del client
        with pytest.raises((Exception, asyncio.CancelledError)):
            await call

    run(work())
    assert ended.wait(LIMIT_S)


def test_a_call_within_the_process_is_no_task() -> None:
    server = MCPServer("t")

    @server.tool(task=TaskConfig(mode="on-demand"))
    async def work(ctx: Context) -> str:
        return f"{await ctx.begin_task(required=False)} {ctx.task_id}"

    result = run(server.acall_tool("work", {}))
    assert result.content[0].text == "False None"


# Registration --------------------------------------------------------------------------------------------------------


def test_what_runs_as_no_task_is_refused_at_registration() -> None:
    server = MCPServer("t")
    for wrong in ({"mode": "sometimes"}, {"ttl": timedelta()}, {"poll_interval": 5}):
        with pytest.raises(RegistrationError, match="TaskConfig"):
            TaskConfig(**wrong)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="async def"):
        server.tool(task=TaskConfig(mode="on-demand"))(lambda_named)
    with pytest.raises(RegistrationError, match="True, False or a TaskConfig"):
        server.tool(task="yes")(lambda_named)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_tasks"):
        MCPServer("t", max_tasks=-1)


def test_a_configuration_of_fastmcps_is_taken() -> None:
    server = MCPServer("t")
    theirs: Any = SimpleNamespace(mode="required", poll_interval=timedelta(seconds=5))
    server.tool(task=theirs)(lambda_named)
    assert server.registry.tools["lambda_named"].task == TaskConfig("required", timedelta(seconds=5))


def lambda_named() -> str:
    return "a function"
