"""Guards composed in Python: permissions, rate limits, time limits and size limits, over the wire and in lists."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from mcpace import (
    AccessRequest,
    AccessToken,
    AuthSettings,
    Context,
    Denied,
    MCPError,
    MCPServer,
    RateLimit,
    RegistrationError,
    TextResource,
    Tool,
    get_access_token,
    requires,
)
from mcpace.server.auth.guards import GuardOptions, Guards, guards, guards_of
from mcpace.server.core.wire_settings import CACHEABLE, CacheHint
from mcpace.testing import connect, freeze_rate_limits, token
from mcpace.types import InputRequiredResult
from support.python_server import Client, served

SETTINGS = AuthSettings(
    issuer_url="https://auth.example",  # type: ignore[arg-type]
    resource_server_url="https://mcp.example/mcp",  # type: ignore[arg-type]
    validate_token_resource=False,
)


class Verifier:
    """The token is a name and its scopes: ``ada:read,write``."""

    async def verify_token(self, token: str) -> AccessToken | None:
        name, _, scopes = token.partition(":")
        return AccessToken(token=token, client_id="c", subject=name, scopes=scopes.split(","))


def private(**options: Any) -> MCPServer[Any]:
    return MCPServer("t", token_verifier=Verifier(), auth=SETTINGS, **options)


def of(port: int, who: str) -> Client:
    return Client(port, headers={"Authorization": f"Bearer {who}"})


def names(client: Client, method: str, member: str) -> list[str]:
    return [one.get("name") for one in client.request(method)["result"][member]]


def only_ada(asked: AccessRequest) -> bool:
    return asked.principal is not None and asked.principal.subject == "ada"


async def only_ada_later(asked: AccessRequest) -> None:
    await asyncio.sleep(0)
    if not only_ada(asked):
        raise Denied(f"{asked.name} is ada's", scopes=["ada"])


# Descriptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "calls", "seconds"),
    [
        ("100/minute", 100, 60),
        ("5/10s", 5, 10),
        ("1 / 2.5 h", 1, 9000),
        ("20 per day", 20, 86400),
        ("3/seconds", 3, 1),
        ("7/30 minutes", 7, 1800),
    ],
)
def test_rates_are_read(rate: str, calls: int, seconds: float) -> None:
    limit = RateLimit(rate)
    assert (limit.calls, limit.seconds, limit.rate) == (calls, seconds, rate)


@pytest.mark.parametrize(
    "rate", ["", "100", "0/minute", "100/0s", "5/100ms", "-1/s", "5/month", "1/400d", "9999999999/s", 5, None]
)
def test_rates_that_are_none_are_refused(rate: Any) -> None:
    with pytest.raises(RegistrationError, match=r"RateLimit\(.*such as '100/minute'"):
        RateLimit(rate)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "nobody"}, "there are 'principal', 'session', 'everyone', or a function"),
        ({"algorithm": "leaky"}, "there are 'fixed-window'"),
        ({"burst": 5}, "is of the algorithm 'token-bucket'"),
        ({"burst": 0, "algorithm": "token-bucket"}, "a whole number from 1 on"),
        ({"burst": True, "algorithm": "token-bucket"}, "a whole number from 1 on"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(RegistrationError, match=said):
        RateLimit("1/s", **options)


@pytest.mark.parametrize("scopes", [(), ("",), ("two words",), ('quo"te',), (5,)])
def test_scopes_that_are_none_are_refused(scopes: Any) -> None:
    with pytest.raises(RegistrationError, match="name one scope or more"):
        requires(*scopes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"permissions": ["read"]}, r"permissions of tool 'x': 'read' is no function .* scopes are requires\('…'\)"),
        ({"permissions": "read"}, r"permissions of tool 'x': 'read' is no function"),
        ({"timeout": float("inf")}, "timeout of tool 'x': must be more than 0 seconds, and no more than a year"),
        ({"permissions": [Denied]}, "is no function of what is asked"),
        ({"rate_limits": [5]}, "rate_limits of tool 'x': 5 is none"),
        ({"timeout": 0}, "timeout of tool 'x': must be more than 0 seconds"),
        ({"timeout": float("nan")}, "timeout of tool 'x': must be more than 0 seconds"),
        ({"permissions": 5}, "permissions of tool 'x': 5 is no list of them"),
        ({"permissions": [requires]}, "is no function of what is asked"),
        ({"rate_limits": {"a": 1}}, "rate_limits of tool 'x': .* is no list of them"),
        ({"timeout": "3"}, "timeout of tool 'x': must be more than 0 seconds"),
        ({"max_result_bytes": 0}, "max_result_bytes of tool 'x': must be a number of bytes from 1 on"),
        ({"max_result_bytes": True}, "max_result_bytes of tool 'x': must be a number of bytes from 1 on"),
        ({"max_result_bytes": "9"}, "max_result_bytes of tool 'x': must be a number of bytes from 1 on"),
    ],
)
def test_guards_that_make_no_sense_are_refused_where_the_tool_is_registered(options: Any, said: str) -> None:
    server = MCPServer("t")
    with pytest.raises(RegistrationError, match=said):
        server.tool(name="x", **options)(lambda: None)
    assert not server.registry.tools


def test_one_may_stand_for_a_list_of_one() -> None:
    made = guards(only_ada, "5/s", what="x")
    assert made.permissions == (only_ada,)
    assert [limit.rate for limit in made.rate_limits] == ["5/s"]


def test_a_server_s_guards_count_beside_a_tool_s_own_and_its_bounds_where_there_are_no_own() -> None:
    server = MCPServer("t", permissions=only_ada, rate_limits="10/s", max_result_bytes=100)
    server.tool(name="x", permissions=requires("a"), rate_limits="1/s", timeout=2)(lambda: None)
    server.tool(name="y", max_result_bytes=5)(lambda: None)
    x, y = (server.__mcpace_core__.guards_of(server.registry.tools[name]) for name in "xy")
    assert [repr(one) for one in x.permissions] == [repr(only_ada), "requires('a')"]
    assert [(limit.rate, limit.name) for limit in x.rate_limits] == [("10/s", "t:server:0"), ("1/s", None)]
    assert (x.max_result_bytes, x.timeout) == (100, 2)
    assert (y.max_result_bytes, y.timeout) == (5, None)


def test_the_signatures_of_the_official_sdk_stay_a_prefix() -> None:
    """Parameters that the official SDK lacks are keyword-only."""
    import inspect

    for method in (MCPServer.tool, MCPServer.add_tool, MCPServer.resource, MCPServer.prompt):
        *_, last = parameters = list(inspect.signature(method).parameters.values())
        assert (last.name, last.kind) == ("guarding", last.VAR_KEYWORD)
        assert {one.kind for one in parameters if one.name == "output_format"} <= {last.KEYWORD_ONLY}
    named = {one for one in inspect.signature(guards).parameters if one != "what"}
    assert named == set(GuardOptions.__annotations__)
    with pytest.raises(TypeError, match="'permision'"):
        MCPServer("t").tool(permision=only_ada)(lambda: None)  # type: ignore[call-arg]


# Permissions ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def guarded_by(*permissions: Any, **options: Any) -> Iterator[int]:
    """A server with guarded components, named ``guarded``, and open ones, named ``open``."""
    server = private(**options)
    server.tool(name="open")(lambda: "open")
    server.tool(name="guarded", permissions=permissions)(lambda: "guarded")
    server.resource("open://r", name="open")(lambda: "open")
    server.resource("guarded://r", name="guarded", permissions=permissions)(lambda: "guarded")
    server.resource("guarded://{x}", name="guarded", permissions=permissions)(lambda x: x)
    server.prompt(name="guarded", permissions=permissions)(lambda: "guarded")
    with served(server) as port:
        yield port


@pytest.mark.parametrize(
    ("permission", "said", "scopes"),
    [
        (requires("ada"), "the scope ada is needed", ["ada"]),
        (only_ada, "not permitted", None),
        (only_ada_later, "is ada's", ["ada"]),
    ],
)
def test_who_may_not_is_refused_with_what_would_help_and_sees_nothing_of_it(
    permission: Any, said: str, scopes: list[str] | None
) -> None:
    uses = [
        ("tools/call", {"name": "guarded", "arguments": {}}),
        ("resources/read", {"uri": "guarded://r"}),
        ("resources/read", {"uri": "guarded://other"}),
        ("prompts/get", {"name": "guarded"}),
    ]
    lists = [
        ("tools/list", "tools", ["open"]),
        ("resources/list", "resources", ["open"]),
        ("resources/templates/list", "resourceTemplates", []),
        ("prompts/list", "prompts", []),
    ]
    with guarded_by(permission) as port:
        ada, bob = of(port, "ada:ada"), of(port, "bob:bob")
        for method, params in uses:
            assert "result" in ada.request(method, params)
            error = bob.request(method, params)["error"]
            assert said in error["message"]
            assert (error.get("data") or {}).get("requiredScopes") == scopes
            assert bob.status == 403
        for method, member, shown in lists:
            assert names(bob, method, member) == shown
            assert names(ada, method, member) == [*shown, "guarded"]


def test_a_permission_that_raises_anything_else_refuses_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(asked: AccessRequest) -> None:
        raise KeyError("secret")

    with guarded_by(broken) as port:
        error = of(port, "ada:ada").request("tools/call", {"name": "guarded", "arguments": {}})["error"]
    assert error["message"] == "not permitted"
    assert "secret" not in json.dumps(error)
    assert "secret" in caplog.text


def test_a_permission_is_asked_of_everything_but_the_arguments() -> None:
    heard: list[tuple[Any, ...]] = []

    def hear(asked: AccessRequest) -> None:
        headers = asked.headers or {}
        heard.append((asked.kind, asked.name, asked.principal.subject, asked.listing, headers.get("x-trace")))

    with guarded_by(hear) as port:
        client = of(port, "ada:ada")
        client.headers["X-Trace"] = "t1"
        client.request("tools/call", {"name": "guarded", "arguments": {"password": "hunter2"}})
        client.request("resources/read", {"uri": "guarded://7"})
        client.request("prompts/list")
    assert heard == [
        ("tool", "guarded", "ada", False, "t1"),
        ("template", "guarded://{x}", "ada", False, "t1"),
        ("prompt", "guarded", "ada", True, "t1"),
    ]


def test_a_server_s_permission_guards_all_that_it_has() -> None:
    with guarded_by(permissions=requires("ada")) as port:
        bob = of(port, "bob:bob")
        assert "error" in bob.request("tools/call", {"name": "open", "arguments": {}})
        assert names(bob, "tools/list", "tools") == []
        assert names(of(port, "ada:ada"), "tools/list", "tools") == ["open", "guarded"]


def test_guards_hold_within_middleware_and_middleware_sees_the_lists_of_the_caller() -> None:
    async def through(ctx: Any, call_next: Any) -> Any:
        return await call_next(ctx)

    with guarded_by(requires("ada"), middleware=[through]) as port:
        ada, bob = of(port, "ada:ada"), of(port, "bob:bob")
        assert names(bob, "tools/list", "tools") == ["open"]
        assert names(ada, "tools/list", "tools") == ["open", "guarded"]
        assert "error" in bob.request("tools/call", {"name": "guarded", "arguments": {}})
        assert ada.text("guarded") == "guarded"


async def passing(ctx: Any, call_next: Any) -> Any:
    return await call_next(ctx)


@pytest.mark.parametrize("middleware", [[], [passing]])
def test_a_list_asks_side_by_side(middleware: list[Any]) -> None:
    """The permissions of a list are checked concurrently, up to a number per caller."""
    at_once = 8

    def server() -> MCPServer[Any]:
        made, meeting = MCPServer[Any]("t", middleware=middleware), None

        async def meet(asked: AccessRequest) -> None:
            nonlocal meeting
            meeting = meeting or asyncio.Barrier(at_once)
            await meeting.wait()

        for number in range(2 * at_once):
            made.tool(name=str(number), permissions=[meet])(lambda: "x")
        return made

    with served(server()) as port:
        assert len(names(Client(port), "tools/list", "tools")) == 2 * at_once
    assert len(asyncio.run(server().list_tools(principal=None))) == 2 * at_once


@pytest.mark.parametrize("has_middleware", [False, True])
def test_lists_that_differ_by_caller_are_private_whatever_the_hint_says(has_middleware: bool) -> None:
    async def through(ctx: Any, call_next: Any) -> Any:
        return await call_next(ctx)

    hints = dict.fromkeys(CACHEABLE, CacheHint(ttl_ms=1000, scope="public"))
    options: dict[str, Any] = {"middleware": [through]} if has_middleware else {}
    server = private(cache_hints=hints, **options)
    server.tool(name="guarded", permissions=requires("ada"))(lambda: "guarded")
    with served(server) as port:
        bob = of(port, "bob:bob")
        assert bob.request("tools/list")["result"]["cacheScope"] == "private"
    inner = private(cache_hints=hints, permissions=only_ada, **options)
    inner.tool(name="x")(lambda: "x")
    with served(inner) as port:
        assert of(port, "bob:bob").request("tools/list")["result"]["cacheScope"] == "private"
    everybody = private(cache_hints=hints, **options)
    everybody.tool(name="x")(lambda: "x")
    with served(everybody) as port:
        assert of(port, "bob:bob").request("tools/list")["result"]["cacheScope"] == "public"


def test_what_is_added_while_the_server_runs_is_guarded_too() -> None:
    server = private()
    server.tool(name="open")(lambda: "open")
    with served(server) as port:
        server.tool(name="later", permissions=requires("ada"))(lambda: "later")
        server.add_resource(TextResource(uri="a://b", name="b", text="x", guards=guards(requires("ada"), what="b")))
        bob = of(port, "bob:bob")
        assert "error" in bob.request("tools/call", {"name": "later", "arguments": {}})
        assert "error" in bob.request("resources/read", {"uri": "a://b"})
        assert of(port, "ada:ada").text("later") == "later"


# How often, how much, how long ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["fixed-window", "sliding-window", "token-bucket"])
def test_what_is_over_a_limit_is_refused_and_told_when_to_come_back(algorithm: Any) -> None:
    server = private()
    clock = freeze_rate_limits(server)
    server.tool(name="x", rate_limits=RateLimit("2/minute", algorithm=algorithm))(lambda: "x")
    with served(server) as port:
        ada, bob = of(port, "ada:"), of(port, "bob:")
        assert [ada.text("x"), ada.text("x")] == ["x", "x"]
        error = ada.request("tools/call", {"name": "x", "arguments": {}})["error"]
        assert ada.status == 429
        wait_ms = error["data"]["retryAfterMs"]
        assert 0 < wait_ms <= 64_000
        assert bob.text("x") == "x"
        clock.advance(wait_ms / 1000)
        assert ada.text("x") == "x"


def test_limits_count_by_what_they_say() -> None:
    server = private()
    freeze_rate_limits(server)
    server.tool(name="all", rate_limits=RateLimit("1/minute", by="everyone"))(lambda: "x")
    server.tool(name="key", rate_limits=RateLimit("1/minute", by=lambda asked: asked.principal.subject[0]))(lambda: "x")
    server.tool(name="one", rate_limits=RateLimit("1/minute", name="both"))(lambda: "x")
    server.tool(name="two", rate_limits=RateLimit("1/minute", name="both"))(lambda: "x")
    with served(server) as port:

        def may(who: str, tool: str) -> bool:
            return "result" in of(port, who).request("tools/call", {"name": tool, "arguments": {}})

        assert [may("ada:", "all"), may("bob:", "all")] == [True, False]
        assert [may("ada:", "key"), may("anna:", "key"), may("bob:", "key")] == [True, False, True]
        assert [may("ada:", "one"), may("ada:", "two"), may("bob:", "two")] == [True, False, True]


def test_a_server_s_limit_counts_all_together() -> None:
    server = private(rate_limits="2/minute")
    freeze_rate_limits(server)
    server.tool(name="x")(lambda: "x")
    server.prompt(name="p")(lambda: "p")
    with served(server) as port:
        ada = of(port, "ada:")
        assert ada.text("x") == "x"
        assert "result" in ada.request("prompts/get", {"name": "p"})
        assert "error" in ada.request("tools/call", {"name": "x", "arguments": {}})


def test_a_result_over_its_bound_is_an_error_and_not_cut() -> None:
    server = MCPServer("t", max_result_bytes=200)
    server.tool(name="plain")(lambda size: "x" * int(size))
    server.tool(name="wide", max_result_bytes=1000)(lambda size: "x" * int(size))
    server.resource("a://{size}", name="a")(lambda size: "x" * int(size))
    with served(server) as port:
        client = Client(port)
        assert client.text("plain", size="100") == "x" * 100
        result = client.call("plain", size="300")
        assert result["isError"]
        assert "the result is too long" in result["content"][0]["text"]
        assert "xx" not in json.dumps(result)
        assert client.text("wide", size="300") == "x" * 300
        assert "too long" in client.request("resources/read", {"uri": "a://300"})["error"]["message"]


def test_a_tool_s_own_time_limit_goes_before_the_server_s() -> None:
    server = MCPServer("t", tool_timeout=30)

    @server.tool(timeout=0.05)
    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    with served(server) as port:
        result = Client(port).call("hangs")
    assert result["isError"]
    assert result["content"][0]["text"] == "timed out after 0.05 seconds"


# Within the process --------------------------------------------------------------------------------------------------


class Sure(BaseModel):
    sure: bool


def inside() -> MCPServer[Any]:
    server = private(providers={"who": whoever})

    @server.tool(permissions=requires("ada"), rate_limits="2/minute", max_result_bytes=150)
    def plain(size: int, ctx: Context, who: str) -> str:
        assert ctx.client_id == "c"
        return who + "x" * size

    @server.tool(permissions=only_ada_later, timeout=0.05)
    async def slow(wait: bool) -> str:
        if wait:
            await asyncio.Event().wait()
        return get_access_token().subject  # type: ignore[no-any-return]

    @server.tool()
    def fails() -> str:
        raise ValueError("no detail")

    server.resource("a://{x}", name="a", permissions=requires("ada"), max_result_bytes=100)(lambda x: x)
    server.prompt(name="p", permissions=requires("ada"))(lambda: "p")
    return server


def whoever() -> str:
    return str(get_access_token().subject)


ADA = AccessToken(token="t", client_id="c", subject="ada", scopes=["ada"])
BOB = AccessToken(token="t", client_id="c", subject="bob", scopes=[])


def text_of(result: Any) -> str:
    text: str = result.content[0].text
    return text


@pytest.mark.parametrize("way", ["awaited", "waited", "client"])
def test_within_the_process_a_caller_meets_what_its_client_would(way: str) -> None:
    server = inside()
    clock = freeze_rate_limits(server)

    def call(tool: str, arguments: dict[str, Any], principal: Any) -> Any:
        if way == "waited":
            return server.call_tool_sync(tool, arguments, principal=principal)
        if way == "awaited":
            return asyncio.run(server.acall_tool(tool, arguments, principal=principal))

        async def ask() -> Any:
            async with connect(server, principal=principal) as client:
                return await client.call_tool(tool, arguments)

        return asyncio.run(ask())

    assert text_of(call("plain", {"size": 3}, ADA)) == "adaxxx"
    assert call("plain", {"size": 3}, ADA).structured_content == {"result": "adaxxx"}
    with pytest.raises(MCPError, match="too many requests") as refused:
        call("plain", {"size": 3}, ADA)
    assert refused.value.data["retryAfterMs"] > 0
    clock.advance(120)
    for nobody in (BOB, None):
        with pytest.raises(MCPError, match="the scope ada is needed") as refused:
            call("plain", {"size": 3}, nobody)
        assert refused.value.data == {"requiredScopes": ["ada"]}
    with pytest.raises(MCPError, match="slow is ada's"):
        call("slow", {"wait": False}, BOB)
    assert text_of(call("slow", {"wait": False}, ADA)) == "ada"
    late = call("slow", {"wait": True}, ADA)
    assert (late.is_error, text_of(late)) == (True, "timed out after 0.05 seconds")
    long = call("plain", {"size": 300}, ADA)
    assert long.is_error
    assert text_of(long) == ("the result is too long: 677 bytes of JSON, and no more than 150 are sent; ask for less")
    wrong = call("plain", {"size": "many"}, ADA)
    assert wrong.is_error
    assert "valid integer" in text_of(wrong)
    failed = call("fails", {}, None)
    assert (failed.is_error, text_of(failed)) == (True, "Error executing tool fails")
    with pytest.raises(MCPError, match=r"(?i)unknown tool: nothing"):
        call("nothing", {}, ADA)


def test_the_server_s_own_calls_are_trusted() -> None:
    server = inside()

    async def call() -> Any:
        [contents] = await server.read_resource("a://" + "x" * 300)  # type: ignore[misc]
        assert contents.content == "x" * 300
        assert (await server.get_prompt("p")).messages  # type: ignore[union-attr]
        assert len(await server.list_tools()) == 3
        return [await server.call_tool("fails") for _ in range(1)]

    with pytest.raises(Exception, match="Error executing tool fails"):
        asyncio.run(call())


def test_the_official_coroutine_on_somebody_s_behalf_raises_as_it_does() -> None:
    server = inside()
    assert text_of(asyncio.run(server.call_tool("slow", {"wait": False}, principal=ADA))) == "ada"
    with pytest.raises(Exception, match="Error executing tool fails"):
        asyncio.run(server.call_tool("fails", principal=None))
    with pytest.raises(MCPError, match="slow is ada's"):
        asyncio.run(server.call_tool("slow", {"wait": False}, principal=BOB))


def test_lists_resources_and_prompts_on_somebody_s_behalf() -> None:
    server = inside()

    async def shown(principal: Any) -> list[list[str]]:
        lists: list[Any] = [
            await server.list_tools(principal=principal),
            await server.list_resource_templates(principal=principal),
            await server.list_prompts(principal=principal),
            await server.list_resources(principal=principal),
        ]
        return [[one.name for one in entries] for entries in lists]

    assert asyncio.run(shown(BOB)) == [["fails"], [], [], []]
    assert [len(entries) for entries in asyncio.run(shown(ADA))] == [3, 1, 1, 0]

    async def use(principal: Any) -> tuple[Any, Any]:
        [contents] = await server.read_resource("a://x", principal=principal)  # type: ignore[misc]
        return contents.content, await server.get_prompt("p", principal=principal)

    assert asyncio.run(use(ADA))[0] == "x"
    with pytest.raises(MCPError, match="the scope ada is needed"):
        asyncio.run(use(BOB))
    with pytest.raises(MCPError, match="the scope ada is needed"):
        asyncio.run(server.get_prompt("p", principal=None))
    with pytest.raises(MCPError, match="the result is too long"):
        asyncio.run(server.read_resource("a://" + "x" * 100, principal=ADA))


def test_a_waited_call_runs_a_plain_function_on_this_very_thread() -> None:
    import threading

    server = MCPServer("t")
    server.tool(name="thread")(lambda: threading.get_ident())
    result: Any = server.call_tool_sync("thread")
    assert text_of(result) == str(threading.get_ident())


def test_a_waited_call_of_a_coroutine_within_a_loop_says_what_to_do() -> None:
    server = inside()

    async def call() -> None:
        server.call_tool_sync("slow", {"wait": False}, principal=ADA)

    with pytest.raises(RuntimeError, match=r"await acall_tool\(…\) instead"):
        asyncio.run(call())


def test_what_one_call_remembers_is_its_own() -> None:
    server = inside()
    assert text_of(server.call_tool_sync("plain", {"size": 1}, principal=ADA)) == "adax"
    assert get_access_token() is None

    async def call() -> None:
        assert text_of(await server.acall_tool("slow", {"wait": False}, principal=ADA)) == "ada"
        assert get_access_token() is None

    asyncio.run(call())


def test_calls_within_the_process_go_through_middleware() -> None:
    seen: list[str] = []

    async def look(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.params["name"])
        return await call_next(ctx)

    server = MCPServer("t", middleware=[look])
    server.tool(name="x")(lambda: "x")
    assert text_of(server.call_tool_sync("x")) == "x"
    assert seen == ["x"]


def test_questions_come_back_as_what_they_are_and_nobody_is_there_to_be_asked() -> None:
    server = MCPServer("t")

    @server.tool()
    def rounds() -> str | InputRequiredResult:
        return InputRequiredResult(request_state="s")

    @server.tool()
    async def asks(ctx: Context) -> str:
        await ctx.report_progress(1)
        await ctx.info("nobody hears of it")
        await ctx.elicit("sure?", Sure)
        return "never"

    assert server.call_tool_sync("rounds") == InputRequiredResult(request_state="s")
    assert asyncio.run(server.call_tool("rounds", principal=None)) == InputRequiredResult(request_state="s")
    with pytest.raises(MCPError, match="a call within the process has no client that could be asked"):
        server.call_tool_sync("asks")


def test_a_tool_in_the_place_of_another_is_the_one_that_is_called() -> None:
    server = MCPServer("t")
    for value in ("one", "two"):
        server.tool(name="x")(lambda value=value: value)
        assert text_of(server.call_tool_sync("x")) == value
        server.remove_tool("x")
    with pytest.raises(MCPError, match="Unknown tool: x"):
        server.call_tool_sync("x")


def test_an_expired_principal_is_refused() -> None:
    expired = AccessToken(token="t", client_id="c", scopes=["ada"], expires_at=1)
    with pytest.raises(Exception, match="the principal's token has expired"):
        inside().call_tool_sync("plain", {"size": 1}, principal=expired)


@pytest.mark.parametrize("way", ["call_tool_sync", "acall_tool", "connect"])
def test_a_principal_is_a_token_or_nobody(way: str) -> None:
    server = inside()
    with pytest.raises(TypeError, match="principal is an AccessToken, or None for a caller without, not 'ada'"):
        if way == "connect":
            connect(server, principal="ada")
        elif way == "acall_tool":
            asyncio.run(server.acall_tool("plain", {"size": 1}, principal="ada"))
        else:
            server.call_tool_sync("plain", {"size": 1}, principal="ada")


def test_arguments_are_what_a_client_could_send() -> None:
    server = MCPServer("t")
    server.tool(name="x")(lambda sure: str(sure))
    assert "'sure': True" in text_of(server.call_tool_sync("x", {"sure": Sure(sure=True)}))
    with pytest.raises(TypeError, match=r"arguments have to be what JSON can carry: .*object is not"):
        server.call_tool_sync("x", {"sure": object()})
    with pytest.raises(TypeError, match="arguments are an object, by names, not list"):
        server.call_tool_sync("x", [1])  # type: ignore[arg-type]


def test_ready_made_tools_bring_their_guards() -> None:
    own = guards(requires("a"), what="x")
    tool = Tool.from_function(lambda: None, name="x", guards=own)
    assert guards_of(tool) == own
    assert guards_of(object()) == Guards()
    assert token("ada", scopes="read").scopes == ["read"]
