"""The Python client with mcpace's servers: 'everything' over HTTP and stdio, and a server of this process."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpace import Client, Context, MCPServer, StdioServerParameters, SyncClient, types
from mcpace.client import ClientError, ListenNotSupportedError, MCPError, OAuth, ResourceUpdated, ToolsListChanged
from support import interop

LIMIT_S = 30


@pytest.fixture(scope="session")
def everything() -> str:
    """The server's program, in the profile of the Rust tests."""
    return interop.everything()


@pytest.fixture
def url(everything: str, tmp_path: Path) -> Iterator[str]:
    with interop.listening([everything, "http"], tmp_path) as url:
        yield url


def run(work: Any) -> Any:
    """Runs a coroutine with a time limit."""
    return asyncio.run(asyncio.wait_for(work, LIMIT_S))


async def sampling(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    assert params.messages[0].role == "user"
    content = types.TextContent(text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def elicitation(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert params.message
    return types.ElicitResult(action="accept", content={"name": "Ada", "response": "yes", "confirm": True})


async def roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])


async def asks_for_all(client: Client) -> None:
    tools = await client.list_tools()
    assert "echo" in [tool.name for tool in tools.tools] and tools.next_cursor is None
    echo = await client.call_tool("echo", {"text": "hello ✓"})
    assert echo.content[0].text == "hello ✓" and not echo.is_error
    assert (await client.call_tool("test_error_handling")).is_error
    with pytest.raises(MCPError, match="no_such_tool") as failed:
        await client.call_tool("no_such_tool", {})
    assert failed.value.code == -32602
    heard: list[tuple[float, float | None]] = []

    async def progress(value: float, total: float | None, message: str | None) -> None:
        heard.append((value, total))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
    assert heard == [(0, 100), (50, 100), (100, 100)]
    assert len((await client.list_resources()).resources) >= 3
    assert len((await client.list_resource_templates()).resource_templates) == 1
    resource = await client.read_resource("test://static-text")
    assert resource.contents[0].text.startswith("This is the content")
    assert len((await client.list_prompts()).prompts) >= 4
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    assert prompt.messages[0].content.text == "Prompt with arguments: arg1='one', arg2='two'"
    reference = types.ResourceTemplateReference(uri="test://template/{id}/data")
    completed = await client.complete(reference, {"name": "id", "value": ""})
    assert completed.completion.values == ["1", "2", "3"]
    sampled = await client.call_tool("test_sampling", {"prompt": "?"})
    assert sampled.content[0].text == "LLM response: Paris"
    answered = await client.call_tool("test_elicitation", {"message": "?"})
    assert "accept" in answered.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_everything_is_reached(everything: str, url: str, way: str, mode: str) -> None:
    async def work() -> None:
        target = url if way == "http" else StdioServerParameters(command=everything, args=["stdio"])
        client = Client(
            target, mode=mode, sampling_callback=sampling, elicitation_callback=elicitation, list_roots_callback=roots
        )
        async with client:
            assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
            assert client.server_info is not None and client.server_info.name == "everything"
            assert client.server_capabilities.tools is not None and client.instructions
            await asks_for_all(client)
            if mode == "legacy":
                await client.send_ping()
                await client.set_logging_level("debug")
            else:
                named = await client.call_tool("test_input_required_result_elicitation", {})
                assert named.content[0].text == "Hello, Ada!"
                with pytest.raises(ClientError, match="does not exist in revision 2026-07-28"):
                    await client.send_ping()
        with pytest.raises(RuntimeError, match="not connected"):
            await client.list_tools()

    run(work())


def test_without_a_loop_everything_is_reached_too(everything: str, url: str) -> None:
    for target in (url, [everything, "stdio"]):
        heard: list[float] = []
        with SyncClient(
            target, elicitation_callback=lambda context, params: {"action": "accept", "content": {"name": "Ada"}}
        ) as client:
            assert client.call_tool("echo", {"text": "ö"}).content[0].text == "ö"
            client.call_tool(
                "test_tool_with_progress", {}, progress_callback=lambda value, *_, to=heard: to.append(value)
            )
            assert heard == [0, 50, 100]
            named = client.call_tool("test_input_required_result_elicitation", {})
            assert named.content[0].text == "Hello, Ada!"
            assert client.read_resource("test://static-text").contents


def test_changes_are_heard(url: str) -> None:
    async def work() -> None:
        async with Client(url) as client:
            watched = "test://watched-resource"
            async with client.listen(tools_list_changed=True, resource_subscriptions=[watched]) as changes:
                assert changes.honored.tools_list_changed
                await client.call_tool("test_trigger_tool_change", {})
                assert await anext(changes) == ToolsListChanged()
                await client.call_tool("test_trigger_resource_change", {})
                assert await anext(changes) == ResourceUpdated(watched)
        async with Client(url, mode="legacy") as client:
            with pytest.raises(ListenNotSupportedError):
                client.listen(tools_list_changed=True)

    run(work())


def test_a_subscription_ends_also_for_who_waits_for_its_next_change(url: str) -> None:
    async def work() -> None:
        async with Client(url) as client:

            async def next_change() -> Any:
                return await anext(changes)

            async with client.listen(tools_list_changed=True) as changes:
                waiting = asyncio.create_task(next_change())
                await asyncio.sleep(0)
            with pytest.raises(StopAsyncIteration):
                await waiting

    run(work())


def test_log_messages_and_news_come_to_their_callbacks_in_order(url: str) -> None:
    async def work() -> None:
        logged: list[Any] = []
        news: list[str] = []
        done = asyncio.Event()

        async def log(params: Any) -> None:
            logged.append(params.data)
            if len(logged) == 3:
                done.set()

        client = Client(url, log_level="info", logging_callback=log, message_handler=lambda n: news.append(n.method))
        async with client:
            await client.call_tool("test_tool_with_logging", {})
            await done.wait()
        assert logged == ["Tool execution started", "Tool processing data", "Tool execution completed"]
        assert news == ["notifications/message"] * 3

    run(work())


def server() -> tuple[MCPServer[Any], list[str]]:
    told: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, str]]:
        task = asyncio.current_task()
        told.append("entered")
        yield {"who": "lifespan"}
        # As cancel scopes and task groups demand.
        told.append("left" if asyncio.current_task() is task else "left by another task")

    mcp = MCPServer("within", lifespan=lifespan)

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def wait(context: Context) -> str:
        told.append("waiting")
        try:
            await asyncio.sleep(LIMIT_S)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return "never"

    return mcp, told


def test_a_server_of_this_process_is_reached_with_its_lifespan_and_cancelled_with_the_caller() -> None:
    mcp, told = server()

    async def work() -> None:
        async with Client(mcp) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            call = asyncio.create_task(client.call_tool("wait", {}))
            while "waiting" not in told:
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            while "cancelled" not in told:
                await asyncio.sleep(0)
            with pytest.raises(TimeoutError, match="tools/call took longer"):
                await client.call_tool("wait", {}, read_timeout_seconds=0.05)

    run(work())
    assert told[0] == "entered" and told.count("left") == 1
    with SyncClient(mcp) as client:
        assert client.call_tool("add", {"a": "1", "b": 2}).structured_content == {"result": 3}
    assert told.count("left") == 2


def test_a_lifespan_that_fails_is_raised_as_it_is() -> None:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    mcp = MCPServer("within", lifespan=lifespan)
    with pytest.raises(LookupError, match="no database"):
        SyncClient(mcp).connect()
    with pytest.raises(LookupError, match="no database"):
        run(Client(mcp).connect())


def test_secrets_are_not_shown() -> None:
    shown = repr(OAuth(client_secret="SECRET", private_key="SECRET"))
    assert "SECRET" not in shown


def test_many_calls_at_once_on_one_loop_and_from_another_afterwards(url: str) -> None:
    async def many(client: Client) -> None:
        texts = [str(number) for number in range(200)]
        called = await asyncio.gather(*(client.call_tool("echo", {"text": text}) for text in texts))
        assert [result.content[0].text for result in called] == texts

    async def work() -> None:
        async with Client(url, max_connections=8) as client:
            await many(client)

    run(work())
    run(work())


def test_a_callback_that_fails_refuses_in_words_and_takes_nothing_down(url: str) -> None:
    async def fails(context: Any, params: Any) -> Any:
        raise ValueError("secret")

    async def work() -> None:
        async with Client(url, elicitation_callback=fails) as client:
            with pytest.raises(MCPError) as failed:
                await client.call_tool("test_input_required_result_elicitation", {})
            assert "ValueError" in str(failed.value) and "secret" not in str(failed.value)
            assert (await client.call_tool("echo", {"text": "x"})).content

    run(work())


def test_what_can_not_be_is_said_in_one_sentence(url: str) -> None:
    with pytest.raises(TypeError, match="a client connects to a URL"):
        Client(7)

    async def connect(target: Any, **options: Any) -> None:
        async with Client(target, **options):
            pass

    with pytest.raises(ConnectionError, match=r"could not connect to 127\.0\.0\.1:1"):
        run(connect("http://127.0.0.1:1/mcp"))
    with pytest.raises(ValueError, match="must start with http"):
        run(connect("ftp://127.0.0.1/mcp"))
    with pytest.raises(ValueError, match="mode is 'auto'"):
        run(connect(url, mode="newest"))
    with pytest.raises(ClientError, match="could not start"):
        run(connect(["no-such-program"]))
    with pytest.raises(ConnectionError, match="exit code 3"):
        run(connect([sys.executable, "-c", "import sys; sys.exit(3)"]))
    with pytest.raises(ClientError, match="check the URL and its path"):
        run(connect(url.replace("/mcp", "/elsewhere")))


def test_nothing_is_left_behind(everything: str, url: str) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def work() -> None:
        for target in (url, [everything, "stdio"]):
            async with Client(target) as client:
                await client.call_tool("echo", {"text": "x"})

    run(work())
    gc.collect()
    before = descriptors()
    for _ in range(5):
        run(work())
    gc.collect()
    deadline = time.monotonic() + LIMIT_S
    while descriptors() > before and time.monotonic() < deadline:
        gc.collect()
    assert descriptors() <= before
