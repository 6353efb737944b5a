"""FastMCP's ``auth=``: checks become permissions, and hold wherever somebody is known or comes over HTTP."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace import (
    AccessToken,
    AuthSettings,
    JWTVerifier,
    MCPError,
    RegistrationError,
    StaticTokenVerifier,
    UnsupportedOption,
)
from mcpace import Client as McpClient
from mcpace.fastmcp import (
    AuthContext,
    AuthorizationError,
    CurrentAccessToken,
    FastMCP,
    TokenClaim,
    ToolError,
    get_access_token,
    require_roles,
    require_scopes,
    restrict_tag,
)
from mcpace.testing import connect, token
from support.python_server import Client, served

ADA = token("ada", scopes=["write"], roles=["admin"])
BOB = token("bob", scopes=["read"], roles="reader")


async def named_ada(context: AuthContext) -> bool:
    await asyncio.sleep(0)
    return context.token is not None and context.token.subject == "ada"


def in_own_words(context: AuthContext) -> bool:
    if context.token is None or context.token.subject != "ada":
        raise AuthorizationError(f"{context.tool.name} is not for you")
    return True


CHECKS: list[tuple[Any, str, list[str] | None]] = [
    (require_scopes("write"), "needs the scopes write", ["write"]),
    (restrict_tag("secret", scopes=["write"]), "needs the scopes write", ["write"]),
    (require_roles("admin", extract=lambda claims: claims["roles"]), "not permitted", None),
    (named_ada, "not permitted", None),
    (in_own_words, "guarded is not for you", None),
    ([require_scopes("write"), named_ada], "needs the scopes write", ["write"]),
]


def guarded(auth: Any) -> FastMCP:
    mcp = FastMCP("t")

    @mcp.tool(auth=auth, tags={"secret"})
    def guarded() -> str:
        caller = get_access_token()
        return caller.subject if caller else "nobody"

    @mcp.tool(auth=restrict_tag("secret", scopes=["write"]))
    def open() -> str:
        return "open"

    return mcp


@pytest.mark.parametrize(("auth", "said", "scopes"), CHECKS)
def test_who_may_not_is_refused_and_isn_t_shown_it(auth: Any, said: str, scopes: list[str] | None) -> None:
    async def ask() -> None:
        mcp = guarded(auth)
        async with connect(mcp, principal=ADA) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["guarded", "open"]
            assert (await client.call_tool("guarded")).content[0].text == "ada"  # type: ignore[union-attr]
        async with connect(mcp, principal=BOB) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["open"]
            with pytest.raises(MCPError, match=said) as refused:
                await client.call_tool("guarded")
            assert (refused.value.data or {}).get("requiredScopes") == scopes
        with pytest.raises(MCPError, match=said):
            await mcp.call_tool("guarded", principal=BOB)
        assert (await mcp.call_tool("guarded", principal=ADA)).content[0].text == "ada"

    asyncio.run(ask())


@pytest.mark.parametrize("auth", [require_scopes("write"), named_ada])
def test_who_has_no_token_is_refused_by_whatever_road(auth: Any) -> None:
    mcp = guarded(auth)
    with served(mcp) as port:
        client = Client(port)
        assert "error" in client.request("tools/call", {"name": "guarded", "arguments": {}})
        assert client.status == 403
        assert [tool["name"] for tool in client.request("tools/list")["result"]["tools"]] == ["open"]

    async def ask() -> None:
        async with connect(mcp) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["open"]
            with pytest.raises(MCPError):
                await client.call_tool("guarded")
        for way in (mcp.call_tool, mcp.acall_tool):
            with pytest.raises(MCPError):
                await way("guarded", principal=None)
        assert [tool.name for tool in await mcp.list_tools(principal=None)] == ["open"]
        # The server's own call is nobody's.
        assert (await mcp.call_tool("guarded")).content[0].text == "nobody"

    asyncio.run(ask())
    with pytest.raises(MCPError):
        mcp.call_tool_sync("guarded", principal=None)


STDIO = """
from mcpace.fastmcp import FastMCP, Middleware, require_scopes

mcp = FastMCP("t")


async def later(context):
    return context.token is not None


@mcp.tool(auth=[require_scopes("write"), later])
def guarded() -> str:
    return "done"


mcp.run()
"""


@pytest.mark.parametrize("middleware", ["", "mcp.add_middleware(Middleware())"])
def test_over_stdio_whoever_started_the_server_is_its_user(middleware: str, tmp_path: Path) -> None:
    """With middleware, lists are made on Python's side: their checks see the same request."""
    program = tmp_path / "program.py"
    program.write_text(STDIO.replace("mcp.run()", f"{middleware}\nmcp.run()"))

    async def ask() -> None:
        async with McpClient([sys.executable, str(program)]) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["guarded"]
            assert (await client.call_tool("guarded")).content[0].text == "done"  # type: ignore[union-attr]

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_a_check_sees_which_resource_is_meant() -> None:
    seen: list[tuple[Any, Any]] = []

    def own(context: AuthContext) -> bool:
        seen.append((context.component.uri, context.component.uri_template))
        return context.component.uri != "note://secret"

    mcp = FastMCP("t")
    mcp.resource("note://all", auth=own)(resource)
    mcp.resource("note://{x}", auth=own)(template)

    async def ask() -> None:
        async with connect(mcp, principal=ADA) as client:
            await client.read_resource("note://all")
            await client.read_resource("note://one")
            with pytest.raises(MCPError, match="not permitted"):
                await client.read_resource("note://secret")

    asyncio.run(ask())
    assert seen == [("note://all", None), ("note://one", "note://{x}"), ("note://secret", "note://{x}")]


def test_resources_and_prompts_have_checks_and_mounted_ones_keep_them() -> None:
    inner, outer = FastMCP("inner"), FastMCP("outer")
    secret = restrict_tag("secret", scopes=["write"])
    inner.resource("a://b", auth=secret, tags={"secret"})(resource)
    inner.resource("a://{x}/c", auth=secret, tags={"secret"})(template)
    inner.prompt(auth=require_scopes("write"))(prompt)
    inner.tool(auth=require_scopes("write"))(prompt)
    outer.mount(inner, "in")

    async def use(principal: Any) -> list[bool]:
        async with connect(outer, principal=principal) as client:
            may = []
            for asked in (
                client.read_resource("a://in/b"),
                client.read_resource("a://in/7/c"),
                client.get_prompt("in_prompt"),
                client.call_tool("in_prompt"),
            ):
                try:
                    await asked
                    may.append(True)
                except MCPError as error:
                    assert "needs the scopes write" in error.message
                    may.append(False)
            return may

    assert asyncio.run(use(ADA)) == [True] * 4
    assert asyncio.run(use(BOB)) == [False] * 4


def resource() -> str:
    return "resource"


def template(x: str) -> str:
    return x


def prompt() -> str:
    return "prompt"


def test_checks_that_are_none_are_refused() -> None:
    with pytest.raises(RegistrationError, match="auth of 'prompt': 5 is no function of an AuthContext"):
        FastMCP("t").tool(auth=5)(prompt)
    with pytest.raises(ValueError, match="at least one role"):
        require_roles(extract=lambda claims: [])


def test_a_role_is_one_word_or_a_list_and_a_token_without_claims_has_none() -> None:
    check = require_roles("reader", extract=lambda claims: claims["roles"])
    component: Any = None
    assert check(AuthContext(BOB, component))
    assert not check(AuthContext(ADA, component))
    assert not check(AuthContext(None, component))
    assert not check(AuthContext(token("joan"), component))


def test_a_tool_s_failure_is_raised_as_ever_on_somebody_s_behalf() -> None:
    mcp = FastMCP("t")

    @mcp.tool(timeout=0.05)
    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(ToolError, match=r"timed out after 0\.05 seconds"):
        asyncio.run(mcp.call_tool("hangs", principal=None))


def whoami(token: AccessToken = CurrentAccessToken(), user: str = TokenClaim("sub")) -> str:  # noqa: B008
    return f"{token.client_id} {user}"


def test_a_verifier_of_tokens_as_the_server_s_auth() -> None:
    mcp = FastMCP("t", auth=StaticTokenVerifier({"good": {"client_id": "me", "sub": "ada", "scopes": ["read"]}}))
    mcp.tool(whoami)
    with served(mcp) as port:
        stranger, forged = Client(port), Client(port, headers={"authorization": "Bearer forged"})
        for client in (stranger, forged):
            client.request("tools/list")
            assert client.status == 401
        client = Client(port, headers={"authorization": "Bearer good"})
        [tool] = client.request("tools/list")["result"]["tools"]
        assert tool["inputSchema"]["properties"] == {}
        assert client.text("whoami") == "me ada"
        refused = client.call("whoami", token={"token": "forged", "client_id": "admin", "scopes": ["all"]})
        assert refused["isError"] and "Unexpected keyword argument" in refused["content"][0]["text"]


def test_a_verifier_that_takes_tokens_for_any_service_needs_settings() -> None:
    keys = {"jwks_uri": "https://auth.example/jwks", "issuer": "https://auth.example"}
    with pytest.raises(UnsupportedOption, match="audience="):
        FastMCP("t", auth=JWTVerifier(**keys))
    settings = FastMCP("t", auth=JWTVerifier(**keys, audience="me")).settings.auth
    assert settings is not None and str(settings.issuer_url) == "https://auth.example"
    own = AuthSettings(issuer_url="https://auth.example", resource_server_url="https://mcp.example/mcp")
    given = FastMCP("t", auth=JWTVerifier(**keys), auth_settings=own).settings.auth
    assert given is not None and str(given.resource_server_url) == "https://mcp.example/mcp"
    with pytest.raises(UnsupportedOption, match="OAuth providers"):
        FastMCP("t", auth=object())
