"""Servers that share sessions and streams over a real Redis: two processes, a kill of one, Redis killed and back."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpace import MCPError, MCPServer, RateLimit
from mcpace.server.running.errors import UsageProblem
from mcpace.server.running.settings import Settings
from support.http_client import LEGACY, HttpClient
from support.redis_server import RedisServer
from support.serve_process import Served, serving

LIMIT_S = 60

SOURCE = """
    import asyncio, os
    from mcpace import Context, MCPServer

    server = MCPServer("shared")

    @server.tool()
    def who() -> str:
        return str(os.getpid())

    @server.tool()
    async def tell(session: str, text: str) -> str:
        await server.notify(session, "notifications/message", {"level": "info", "data": text})
        return "told"

    @server.tool()
    async def tell_all(text: str) -> str:
        await server.broadcast("notifications/message", {"level": "info", "data": text})
        return "told"

    @server.tool()
    async def hang(ctx: Context) -> str:
        await ctx.report_progress(1)
        await asyncio.Event().wait()
        return "never"
"""


@contextlib.contextmanager
def both(folder: Path, redis: RedisServer, *words: str) -> Iterator[tuple[Served, Served]]:
    """Two servers that share only Redis, as on two machines."""
    options = ("server.py:server", "--port", "0", "--store", redis.url, *words)
    with (
        serving(folder, *options, source=SOURCE) as one,
        serving(folder, *options) as other,
    ):
        one.ready()
        other.ready()
        yield one, other


class Session:
    """A client's session, whose requests may go to any server."""

    def __init__(self, port: int) -> None:
        client = HttpClient(port)
        client.initialize()
        self.id = client.session

    def at(self, port: int) -> HttpClient:
        """A new connection to one of the servers."""
        return HttpClient(port, revision=LEGACY, session=self.id)

    def call(self, port: int, tool: str) -> http.client.HTTPResponse:
        """The response to a call that wants to know of its progress."""
        return self.at(port).post("tools/call", {"name": tool, "arguments": {}, "_meta": {"progressToken": 1}})


def events(stream: http.client.HTTPResponse) -> Iterator[tuple[str | None, Any]]:
    """Events with their ids; priming has no data."""
    event_id = None
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            event_id = value
        elif line == b"\n" and event_id is not None:
            yield event_id, None
            event_id = None
        elif name == "data" and value:
            yield event_id, json.loads(value)
            event_id = None


def test_a_session_and_its_streams_outlive_the_process_that_began_them(tmp_path: Path, redis: RedisServer) -> None:
    with both(tmp_path, redis) as (one, other):
        session = Session(one.port)
        assert {session.at(one.port).text("who"), session.at(other.port).text("who")} == {
            str(one.process.pid),
            str(other.process.pid),
        }
        # A message from one process reaches the stream that the other process holds.
        told = events(session.at(other.port).listen())
        assert next(told)[1] is None
        assert session.at(one.port).text("tell", session=session.id, text="across") == "told"
        _, message = next(told)
        assert message["params"]["data"] == "across"
        assert session.at(one.port).text("tell_all", text="to all") == "told"
        _, message = next(told)
        assert message["params"]["data"] == "to all"

        # A call's stream, from the first; then that process is killed.
        calling = events(session.call(one.port, "hang"))
        first, primed = next(calling)
        assert primed is None
        assert next(calling)[1]["method"] == "notifications/progress"
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait(LIMIT_S)

        # The session goes on. Messages of the stream are replayed, and a lost answer is reported instead of awaited.
        assert session.at(other.port).text("who") == str(other.process.pid)
        assert session.at(other.port).text("tell", session=session.id, text="after") == "told"
        assert next(told)[1]["params"]["data"] == "after"
        again = list(events(session.at(other.port).listen(first)))
        assert [message.get("method") for _, message in again] == ["notifications/progress", None]
        assert again[1][1]["id"] == 1
        assert "ended before it answered" in again[1][1]["error"]["message"]


def test_nothing_acknowledged_is_lost_when_redis_restarts(tmp_path: Path, redis: RedisServer) -> None:
    with both(tmp_path, redis) as (one, other):
        session = Session(one.port)
        assert session.at(one.port).text("tell", session=session.id, text="kept") == "told"
        redis.kill()
        one.lines.until("can't be reached .*: requests of sessions are refused until it is back")
        for _ in range(3):
            refused = session.call(one.port, "who")
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            refused.read()
        redis.start()
        for server in (one, other):
            server.lines.until(r"Redis at \S+ is back")
        assert session.at(other.port).text("who") == str(other.process.pid)
        told = [message for _, message in zip(range(2), events(session.at(other.port).listen()), strict=False)]
        assert told[1][1]["params"]["data"] == "kept"
        # Logged once, however many requests failed.
        assert sum("can't be reached" in line for line in one.lines.said) == 1


def test_in_memory_each_process_goes_on(tmp_path: Path, redis: RedisServer) -> None:
    with both(tmp_path, redis, "--on-store-down", "memory") as (one, other):
        session = Session(one.port)
        redis.kill()
        one.lines.until("sessions are this process's own until it is back")
        other.lines.until("sessions are this process's own until it is back")
        assert session.at(one.port).text("who") == str(one.process.pid)
        # A process that doesn't know the session answers 404, because it can't ask the store.
        assert session.call(other.port, "who").status == 404


def test_a_worker_that_is_killed_takes_no_session_along(tmp_path: Path, redis: RedisServer) -> None:
    words = ("server.py:server", "--port", "0", "--store", redis.url, "--workers", "2")
    with serving(tmp_path, *words, source=SOURCE) as served:
        served.ready()
        session = Session(served.port)
        owner = session.at(served.port).text("who")
        os.kill(int(owner), signal.SIGKILL)
        served.lines.until("worker")
        deadline_calls = 0
        while True:
            # A connection may have belonged to the killed worker.
            with contextlib.suppress(OSError, http.client.HTTPException):
                response = session.call(served.port, "who")
                assert response.status == 200, response.read()
                assert json.loads(response.read())["result"]["content"][0]["text"] != owner
                break
            deadline_calls += 1
            assert deadline_calls < 50


def test_servers_of_two_names_know_nothing_of_each_other(tmp_path: Path, redis: RedisServer) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "another").mkdir()
    options = ("server.py:server", "--port", "0", "--store", redis.url)
    with (
        serving(tmp_path / "one", *options, source=SOURCE) as one,
        serving(tmp_path / "another", *options, source=SOURCE.replace('"shared"', '"another"')) as another,
    ):
        one.ready()
        another.ready()
        session = Session(one.port)
        assert session.call(one.port, "who").status == 200
        assert session.call(another.port, "who").status == 404
        # A stream of one server gets no messages of the other.
        elsewhere = Session(another.port)
        stream = events(elsewhere.at(another.port).listen())
        assert session.at(one.port).text("tell_all", text="ours") == "told"
        assert elsewhere.at(another.port).text("tell_all", text="theirs") == "told"
        assert next(event for _, event in stream if event is not None)["params"]["data"] == "theirs"


def test_a_prefix_is_the_servers_name_where_that_is_one() -> None:
    assert Settings().prefix_for("shop") == "mcpace:shop:"
    assert len(Settings().prefix_for("x" * 1000)) < 100
    assert Settings(store_prefix="mine:").prefix_for("shop") == "mine:"
    for drawn in ("mcp-server", "FastMCP", "FastMCP-1a2b"):
        assert Settings().prefix_for(drawn) == "mcpace:"


def test_limits_of_one_name_are_counted_by_their_prefix(redis: RedisServer) -> None:
    def counted(prefix: str) -> MCPServer[Any]:
        server: MCPServer[Any] = MCPServer("shop", limiter=redis.url, store_prefix=prefix)

        @server.tool(rate_limits=RateLimit("1/hour", by="everyone"))
        def rare() -> str:
            return "once"

        return server

    def call(server: MCPServer[Any]) -> bool:
        try:
            return not server.call_tool_sync("rare", {}).is_error
        except MCPError:
            return False

    one, same, other = counted("a:"), counted("a:"), counted("b:")
    assert [call(server) for server in (one, same, other, other)] == [True, False, True, False]
    with pytest.raises(ValueError, match="needs a name"):
        MCPServer(limiter=redis.url)


@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_counts_over_a_connection_of_its_own(redis: RedisServer) -> None:
    server: MCPServer[Any] = MCPServer("shop", limiter=redis.url)

    @server.tool(rate_limits=RateLimit("2/hour", by="everyone"))
    def rare() -> str:
        return "counted"

    def call() -> str:
        try:
            return "refused" if server.call_tool_sync("rare", {}).is_error else "counted"
        except MCPError as error:
            return str(error.code)

    assert call() == "counted"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # The alarm ends the child if it hangs.
        signal.alarm(LIMIT_S)
        os.write(writer, json.dumps([call(), call()]).encode())
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(reader) as said:
        assert json.load(said) == ["counted", "-32004"]
    assert call() == "-32004"


def test_the_session_of_a_stream_is_not_what_a_message_says(tmp_path: Path) -> None:
    source = """
        from mcpace import Context, MCPServer

        server = MCPServer("sessions")

        @server.tool()
        async def session(ctx: Context) -> str:
            return str(ctx.session_id)
    """
    with serving(tmp_path, "server.py:server", "--port", "0", "--transport", "sse", source=source) as served:
        served.ready()
        stream = HttpClient(served.port, path="/sse").listen()
        data = (line.removeprefix(b"data: ").strip() for line in stream if line.startswith(b"data: "))
        path = next(data).decode()

        def post(message: dict[str, Any]) -> None:
            assert HttpClient(served.port, path=path, session="0" * 32).post_message(message).status == 202

        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert "result" in json.loads(next(data))
        post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "session", "arguments": {}}})
        session = json.loads(next(data))["result"]["content"][0]["text"]
        assert session == path.partition("sessionId=")[2]


def test_a_store_that_is_not_there_is_said_at_start_without_its_password(tmp_path: Path) -> None:
    words = ("server.py:server", "--port", "0", "--store", "redis://:hunter2@127.0.0.1:1")
    with serving(tmp_path, *words, source=SOURCE) as served:
        assert served.ended() == 3
        assert "Redis at 127.0.0.1:1 can't be reached" in served.said
        assert "hunter2" not in served.said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"store": "http://127.0.0.1"}, "no Redis"),
        ({"store": "redis://:hunter2@127.0.0.1", "store_prefix": ""}, "prefix"),
        ({"store": "redis://127.0.0.1", "transport": "stdio"}, "stdio"),
        ({"store": "redis://127.0.0.1", "transport": "sse"}, "sse"),
        ({"store": "redis://127.0.0.1", "stateless": True}, "stateless"),
        ({"on_store_down": "panic"}, "on_store_down"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageProblem, match=said) as problem:
        Settings(**given)
    assert "hunter2" not in str(problem.value)
