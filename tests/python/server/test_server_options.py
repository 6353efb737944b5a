"""Options of a server: those that are accepted, and those that the constructor refuses by name."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from mcpace import (
    AccessToken,
    AuthSettings,
    CacheHint,
    Context,
    Extension,
    InMemorySubscriptionBus,
    MCPServer,
    RegistrationError,
    RequestStateSecurity,
    ResourceSecurity,
    TextResource,
    Tool,
    ToolBinding,
    UnsupportedOption,
)
from mcpace.fastmcp import FastMCP
from mcpace.server.auth.bearer_tokens import http_options
from mcpace.server.calls.session import Session
from mcpace.server.core.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcpace.server.core.wire_settings import CACHEABLE
from mcpace.server.running.transports import keywords_of, options_of
from mcpace.server.settings import HttpKeywords
from mcpace.types import Icon
from support.python_server import Client, served

SETTINGS = {"issuer_url": "https://auth.example", "resource_server_url": "https://mcp.example/mcp"}


class Verifier:
    def __init__(self, token: AccessToken | None = None) -> None:
        self.token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.token


def settings(**more: Any) -> AuthSettings:
    return AuthSettings(**SETTINGS | {"validate_token_resource": False} | more)


# Construction --------------------------------------------------------------------------------------------------------


def test_names_and_descriptions_are_kept() -> None:
    icons = [Icon(src="data:,")]
    server = MCPServer("n", "t", "d", "i", "https://w", icons, "1")
    assert (server.name, server.title, server.description, server.instructions) == ("n", "t", "d", "i")
    assert (server.website_url, server.icons, server.version) == ("https://w", icons, "1")
    assert MCPServer().name == "mcp-server"


def test_tools_and_resources_can_be_given() -> None:
    def tool() -> str: ...

    server = MCPServer(tools=[Tool.from_function(tool)], resources=[TextResource(uri="a://b", text="c")])
    assert [one.name for one in asyncio.run(server.list_tools())] == ["tool"]
    assert [one.name for one in asyncio.run(server.list_resources())] == ["a://b"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"auth_server_provider": object()}, "auth_server_provider: mcpace issues no tokens"),
        ({"subscriptions": True}, "must be a SubscriptionBus"),
        ({"request_state_security": object()}, "is another SDK's"),
        ({"log_level": "LOUD"}, "log_level 'LOUD'"),
        ({"auth": settings(), "token_verifier": None}, "Must specify either"),
        ({"token_verifier": Verifier()}, "without auth settings"),
        ({"tool_timeout": 0}, "tool_timeout must be more than 0"),
        ({"cache_hints": {"tools/call": CacheHint()}}, "must be cacheable methods"),
        ({"request_state_security": RequestStateSecurity(keys=["x" * 32])}, "has no name"),
        ({"limiter": "redis://localhost"}, "a server with a limiter needs a name"),
    ],
)
def test_what_isn_t_covered_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((UnsupportedOption, ValueError, TypeError), match=said):
        MCPServer(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"codec": object()}, r"RequestStateSecurity\(codec=…\)"),
        ({"keys": ["x" * 32], "ttl": 5.0}, r"RequestStateSecurity\(ttl=…\)"),
        ({"keys": ["x" * 32, "y" * 32]}, "one key is taken"),
        ({"keys": ["short"]}, "at least 32 bytes"),
        ({}, "takes keys"),
    ],
)
def test_state_is_protected_by_one_key(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RequestStateSecurity(**options)


def test_a_key_is_a_server_s_own_and_not_shown() -> None:
    security = RequestStateSecurity(keys=["s" * 32])
    assert len(security.key("a")) == 32
    assert security.key("a") == RequestStateSecurity(keys=[b"s" * 32]).key("a") != security.key("b")
    assert "sss" not in repr(security)
    server = MCPServer("a", request_state_security=security)
    key = server.__mcpace_core__.state_key()
    assert key == security.key("a")
    shown = repr(server) + repr(vars(server)) + repr(vars(server.__mcpace_core__))
    assert "sss" not in shown
    assert repr(key) not in shown


def test_what_only_the_package_needs_is_not_on_a_servers_face() -> None:
    inner = {"core", "contexts", "is_wrapped", "interceptors", "declared", "cache", "state_key", "remembers_principals"}
    assert inner & {*dir(MCPServer("a")), *dir(FastMCP("a"))} == set()


def test_one_cache_hint_for_all_is_taken() -> None:
    hint = CacheHint(ttl_ms=1000, scope="public")
    assert MCPServer(cache_hints=dict.fromkeys(CACHEABLE, hint)).__mcpace_core__.cache == hint
    with pytest.raises(ValueError, match="ttl_ms must be >= 0"):
        CacheHint(ttl_ms=-1)


@pytest.mark.parametrize(
    ("hints", "sent"),
    [
        ({"tools/list": CacheHint(5, "public")}, CacheHint()),
        (dict.fromkeys(CACHEABLE, CacheHint(9, "public")) | {"tools/list": CacheHint(5)}, CacheHint(5, "private")),
        (
            dict.fromkeys(CACHEABLE, CacheHint(9, "public")) | {"tools/list": CacheHint(5, "public")},
            CacheHint(5, "public"),
        ),
    ],
)
def test_most_cautious_of_different_cache_hints_is_sent(
    hints: dict[Any, CacheHint], sent: CacheHint, caplog: pytest.LogCaptureFixture
) -> None:
    assert MCPServer(cache_hints=hints).__mcpace_core__.cache == sent
    assert "one hint with all" in caplog.text


def test_fastmcp_sends_one_cache_hint_with_all_results() -> None:
    assert FastMCP("x", cache_ttl=300).__mcpace_core__.cache == CacheHint(300_000, "private")
    assert FastMCP("x", cache_ttl=1, cache_scope="public").__mcpace_core__.cache == CacheHint(1000, "public")
    for options in ({"cache_ttl": 0}, {"cache_scope": "public"}):
        with pytest.raises(ValueError, match="cache_ttl"):
            FastMCP("x", **options)


def test_server_without_subscriptions_is_made() -> None:
    assert MCPServer("x", subscriptions=False).name == "x"


# Authentication ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "wanted", "good"),
    [
        (None, {}, False),
        (AccessToken(token="t", client_id="c", scopes=[]), {}, True),
        (AccessToken(token="t", client_id="c", scopes=[]), {"validate_token_resource": True}, False),
        (
            AccessToken(token="t", client_id="c", scopes=[], resource="https://MCP.example:443/mcp/"),
            {"validate_token_resource": True},
            True,
        ),
        (
            AccessToken(token="t", client_id="c", scopes=[], resource="https://other.example/mcp"),
            {"validate_token_resource": True},
            False,
        ),
    ],
)
def test_tokens_are_looked_at(token: AccessToken | None, wanted: dict[str, Any], good: bool) -> None:
    verify = http_options(settings(**wanted), Verifier(token))["token_verifier"]
    assert (asyncio.run(verify("t")) is token) is (good or token is None)


@pytest.mark.parametrize(("left_s", "status"), [(-1, 401), (1000, 200)])
def test_a_token_that_expired_is_refused_before_anything_runs(left_s: int, status: int) -> None:
    token = AccessToken(token="t", client_id="c", scopes=[], expires_at=int(time.time()) + left_s)
    server = MCPServer(token_verifier=Verifier(token), auth=settings())
    with served(server, stateless=True) as port:
        client = Client(port, era="legacy", headers={"Authorization": "Bearer t"})
        response = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}})
        response.read()
        assert response.status == status


def test_the_transport_is_told_who_issues_and_what_for() -> None:
    options = http_options(settings(required_scopes=["read"]), Verifier())
    verify = options.pop("token_verifier")
    assert callable(verify)
    assert options == {
        "resource": "https://mcp.example/mcp",
        "authorization_servers": ["https://auth.example"],
        "required_scopes": ["read"],
    }


def test_clients_are_told_of_all_who_issue() -> None:
    more = settings(authorization_servers=["https://b.example", "https://auth.example", "https://c.example/x"])
    told = http_options(more, Verifier())["authorization_servers"]
    assert told == ["https://auth.example", "https://b.example", "https://c.example/x"]


@pytest.mark.parametrize(
    "more",
    [
        {"client_registration_options": {"enabled": True}},
        {"revocation_options": {}},
        {"identity_assertion_enabled": True},
    ],
)
def test_issuing_is_refused(more: dict[str, Any]) -> None:
    if more == {"revocation_options": {}}:
        settings(**more)
        return
    with pytest.raises((UnsupportedOption, ValidationError), match="issues no tokens"):
        settings(**more)


def test_a_resource_must_be_named_to_be_compared() -> None:
    with pytest.raises(ValidationError, match="requires resource_server_url"):
        settings(resource_server_url=None, validate_token_resource=True)
    with pytest.raises(UnsupportedOption, match="without resource_server_url"):
        http_options(settings(resource_server_url=None), Verifier())


# Extensions ----------------------------------------------------------------------------------------------------------


class Named(Extension):
    identifier = "com.example/named"

    def settings(self) -> dict[str, Any]:
        return {"level": 2}

    def tools(self) -> Sequence[ToolBinding]:
        def brought() -> str:
            return "brought"

        return [ToolBinding(brought, meta={"ui": 1}, kwargs={"title": "B"})]


def test_an_extension_brings_tools_and_is_declared() -> None:
    server = MCPServer("t", extensions=[Named()])
    assert server.__mcpace_core__.declared_extensions == {"com.example/named": {"level": 2}}
    [tool] = asyncio.run(server.list_tools())
    assert (tool.name, tool.title, tool.meta) == ("brought", "B", {"ui": 1})
    assert not server.__mcpace_core__.is_wrapped("tools/call")


def test_an_extension_with_a_hook_wraps_tool_calls_only() -> None:
    class Hooked(Named):
        async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
            return await call_next(ctx)

    server = MCPServer("t", extensions=[Hooked()])
    assert server.__mcpace_core__.is_wrapped("tools/call")
    assert not server.__mcpace_core__.is_wrapped("resources/read")


def test_extensions_that_can_t_be_taken_are_refused() -> None:
    with pytest.raises(ValueError, match="already registered"):
        MCPServer("t", extensions=[Named(), Named()])
    with pytest.raises(TypeError, match="must be a `vendor-prefix/name` string"):
        type("Bad", (Extension,), {"identifier": "nameless"})

    class Methods(Named):
        def methods(self) -> Sequence[Any]:
            return ["vendor/method"]

    with pytest.raises(UnsupportedOption, match="brings the methods vendor/method"):
        MCPServer("t", extensions=[Methods()])


# Resources and prompts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "function", "said"),
    [
        ("a://{x}", lambda y: "", r"Mismatch between URI parameters \['x'\] and function parameters \['y'\]"),
        ("a://b", lambda x: "", "has no URI template variables"),
        ("a://{x}{?q}", lambda x, q: "", r"query parameter\(s\) \['q'\] have no default"),
        ("a://{x", lambda x: "", "a brace doesn't close"),
        ("nothing", lambda: "", "a URI has a scheme"),
    ],
)
def test_resources_that_can_t_be_are_refused(uri: str, function: Any, said: str) -> None:
    server = MCPServer("t")
    with pytest.raises(RegistrationError, match=said):
        server.resource(uri, name="n")(function)


def static(ctx: Context) -> str: ...


def test_a_static_resource_has_no_context() -> None:
    with pytest.raises(RegistrationError, match="Context injection for static resources is not supported"):
        MCPServer("t").resource("a://b")(static)


def test_duplicates_of_resources_and_prompts_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("t")
    for text in ("first", "second"):
        server.add_resource(TextResource(uri="a://b", text=text))
        server.prompt(name="p")(lambda text=text: text)
    assert "Resource already exists: a://b" in caplog.text
    assert "Prompt already exists: p" in caplog.text
    [contents] = asyncio.run(server.read_resource("a://b"))  # type: ignore[misc]
    assert contents.content == "first"


def test_unsafe_values_are_as_if_there_were_no_such_resource() -> None:
    server = MCPServer("t")

    @server.resource("file://{+path}")
    def strict(path: str) -> str:
        return path

    @server.resource("range://{+span}", security=ResourceSecurity(exempt_params={"span"}))
    def free(span: str) -> str:
        return span

    async def read(uri: str) -> str:
        [contents] = await server.read_resource(uri)  # type: ignore[misc]
        return str(contents.content)

    assert asyncio.run(read("file://a/b")) == "a/b"
    assert asyncio.run(read("range://../b")) == "../b"
    with pytest.raises(Exception, match="Unknown resource"):
        asyncio.run(read("file://../b"))


# Changes -------------------------------------------------------------------------------------------------------------


def test_changes_go_over_the_bus() -> None:
    bus, heard = InMemorySubscriptionBus(), []
    server = MCPServer("t", subscriptions=bus)
    unsubscribe = bus.subscribe(heard.append)

    async def change() -> None:
        await server.notify_list_changed("tools")
        await server.notify_resource_updated("a://b")
        unsubscribe()
        await server.notify_list_changed("prompts")

    asyncio.run(change())
    assert heard == [ToolsListChanged(), ResourceUpdated("a://b")]
    with pytest.raises(TypeError, match="must be a SubscriptionBus"):
        MCPServer(subscriptions=object())


def test_what_a_function_says_of_changes_goes_over_the_bus() -> None:
    bus, heard = InMemorySubscriptionBus(), []
    bus.subscribe(heard.append)
    context: Context = Context(server=MCPServer("t", subscriptions=bus))
    session = Session(context)

    async def change() -> None:
        await context.notify_tools_changed()
        await context.notify_prompts_changed()
        await context.notify_resources_changed()
        await context.notify_resource_updated("a://b")
        await session.send_tool_list_changed()
        await session.send_prompt_list_changed()
        await session.send_resource_list_changed()
        await session.send_resource_updated("a://b")

    asyncio.run(change())
    assert heard == [ToolsListChanged(), PromptsListChanged(), ResourcesListChanged(), ResourceUpdated("a://b")] * 2


# Running -------------------------------------------------------------------------------------------------------------


def test_the_official_keywords_are_understood() -> None:
    assert options_of(
        "streamable-http", {"streamable_http_path": "/x", "stateless_http": True, "event_store": None}
    ) == {
        "path": "/x",
        "stateless": True,
    }
    limits = {"max_request_body_size": 9, "session_idle_timeout": 2.5, "max_sessions": 3, "retry_interval": 1500}
    assert options_of("http", limits) == {"max_body": 9, "session_idle_s": 2.5, "max_sessions": 3, "retry_s": 1.5}
    assert options_of("http", dict.fromkeys(limits)) == {}
    security = {"allowed_hosts": ["a.example:*", "b.example:1"], "allowed_origins": ["https://c.example"]}
    assert options_of("http", {"transport_security": security}) == {
        "allowed_hosts": ("a.example", "b.example:1"),
        "allowed_origins": ("https://c.example",),
    }
    assert options_of("http", {"transport_security": {"enable_dns_rebinding_protection": False}}) == {
        "allowed_hosts": ("*",),
        "allowed_origins": ("*",),
    }


def test_what_a_transport_doesn_t_have_is_refused() -> None:
    with pytest.raises(UnsupportedOption, match=r"sse_path='/x'.*run sse_app\(\)"):
        options_of("sse", {"sse_path": "/x"})
    with pytest.raises(TypeError, match="takes no port"):
        options_of("stdio", {"port": 1})
    with pytest.raises(ValueError, match="Unknown transport: carrier-pigeon"):
        MCPServer("t").run("carrier-pigeon")  # type: ignore[arg-type]


def test_an_event_store_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    assert options_of("http", {"event_store": object()}) == {}
    [said] = caplog.messages
    assert said.startswith("event_store is not used")
    assert "store='redis://" in said


def test_settings_of_the_constructor_hold_where_a_transport_is_not_given_its_own() -> None:
    given: HttpKeywords = {
        "host": "127.0.0.2",
        "port": 9777,
        "streamable_http_path": "/api",
        "stateless_http": True,
        "json_response": True,
        "transport_security": {"allowed_hosts": ["mcp.example"]},
        "mount_path": "/m",
    }
    server = MCPServer("t", **given)
    assert (server.settings.host, server.settings.port, server.settings.mount_path) == ("127.0.0.2", 9777, "/m")
    kept = {**given}
    del kept["mount_path"]
    assert keywords_of(server, "streamable-http", {}) == kept
    assert keywords_of(server, "streamable-http", {"port": 1})["port"] == 1
    assert keywords_of(server, "stdio", {}) == {}
    assert keywords_of(server, "sse", {}) == {
        "host": "127.0.0.2",
        "port": 9777,
        "mount_path": "/m",
        "transport_security": {"allowed_hosts": ["mcp.example"]},
    }
    server.settings.port = 9778
    assert keywords_of(server, "sse", {})["port"] == 9778
    assert keywords_of(MCPServer("plain"), "streamable-http", {}) == {}


def test_a_keyword_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"MCPServer\(\) got an unexpected keyword argument 'prot'"):
        MCPServer("t", prot=1)  # type: ignore[call-arg]


def test_a_route_without_starlette_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.routing", None)
    with pytest.raises(RegistrationError, match=r"needs starlette.*pip install 'mcpace\[routes\]'"):
        MCPServer("t").custom_route("/health", methods=["GET"])(lambda request: None)


def test_a_route_s_path_begins_with_a_slash() -> None:
    with pytest.raises(RegistrationError, match="begins with a slash"):
        MCPServer("t").custom_route("health", methods=["GET"])(lambda request: None)


def test_a_server_is_light_to_import() -> None:
    """Importing a plain server must not load modules that it doesn't need."""
    heavy = {"asyncio", "starlette", "anyio", "rich", "numpy", "typer", "mcpace._core", "mcpace.lab", "urllib.request"}
    program = (
        "import sys; from mcpace import MCPServer, Context; s = MCPServer('x');\n"
        "@s.tool()\ndef add(a: int) -> int: return a\n"
        f"print(sorted({heavy!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_stdio_server_starts_without_an_event_loop_and_what_only_workers_need() -> None:
    heavy = {"asyncio", "ssl", "mcpace.messages", "mcpace.server.running.supervised_run", "mcpace.server.adopt"}
    program = (
        "import sys; from mcpace import MCPServer; s = MCPServer('x');\n"
        "@s.tool()\ndef add(a: int) -> int: return a\n"
        f"s.run('stdio'); print(sorted({heavy!r} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input="", capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "[]"
