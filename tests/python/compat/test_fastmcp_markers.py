"""Markers of dependencies that a server does not know are refused: no client fills such a parameter in."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Annotated, Any

import pytest
from typing_extensions import TypeAliasType

from mcpace import MCPServer, Resolve
from mcpace import fastmcp as face
from mcpace.fastmcp import CallArgument, CurrentAccessToken, Depends, FastMCP, Progress
from mcpace.server.errors import InvalidSignature
from mcpace.server.registration.markers import FASTMCP_MARKERS
from support.adoption import ROOT, SDKS, interpreter

FASTMCP_4 = next(sdk for sdk in SDKS if sdk.name == "fastmcp-4")

FOREIGN = """
import json, sys, warnings
from typing import Annotated, Any
from pydantic import Field
import fastmcp.dependencies as theirs
from fastmcp import Context as TheirContext
from fastmcp.server.auth import AccessToken
from fastmcp.server.sessions import SessionId, UserSession
from mcp.server.mcpserver import Resolve
from mcpace import MCPServer
from mcpace.fastmcp import Depends, FastMCP
from mcpace.server.errors import InvalidSignature

def token(token: AccessToken = theirs.CurrentAccessToken()) -> str: return token.client_id
def headers(headers: dict = theirs.CurrentHeaders()) -> str: return "x"
def request(request: Any = theirs.CurrentRequest()) -> str: return "x"
def claim(user: str = theirs.TokenClaim("sub")) -> str: return user
def depends(value: int = theirs.Depends(lambda: 1)) -> str: return str(value)
def annotated(value: Annotated[int, theirs.Depends(lambda: 1)]) -> str: return str(value)
def optional(value: Annotated[int, theirs.Depends(lambda: 1)] | None = None) -> str: return str(value)
def shared(value: int = theirs.Shared(lambda: 1)) -> str: return str(value)
def field(token: Any = Field(default=theirs.CurrentAccessToken())) -> str: return "x"
def factory(token: Any = theirs.CurrentAccessToken) -> str: return "x"
def resolve(value: Annotated[int, Resolve(lambda: 1)]) -> str: return str(value)
def session(session: UserSession) -> str: return "x"
def nested(value: str = Depends(token)) -> str: return value
class Mine(theirs.Dependency):
    async def __aenter__(self): return 1
def derived(value: int = Mine()) -> str: return str(value)
def session_id(session_id: SessionId) -> str: return session_id

ALL = [token, headers, request, claim, depends, annotated, optional, shared, field, factory, resolve, session,
       nested, derived, session_id]
told = {}
for make in (MCPServer, FastMCP):
    for function in ALL:
        name = function.__name__
        parameter = next(iter(function.__annotations__))
        ways = {
            "tool": lambda s: s.tool(name="t")(function),
            "prompt": lambda s: s.prompt(name="p")(function),
            "resource": lambda s: s.resource("r://x")(function),
            "template": lambda s: s.resource("r://{" + parameter + "}")(function),
        }
        if make is FastMCP:
            ways["nested"] = lambda s: s.tool(name="t")(lambda value=Depends(function): 1)
        else:
            def resolver(value: Annotated[str, Resolve(function)]): return "x"
            def provided(value): return "x"
            ways["resolver"] = lambda s: s.tool(name="t")(resolver)
            ways["provider"] = lambda s: MCPServer("x", providers={"value": function})
        for way, register in ways.items():
            try:
                register(make("x"))
                told[f"{make.__name__} {way} {name}"] = "accepted"
            except InvalidSignature as error:
                told[f"{make.__name__} {way} {name}"] = str(error)
def context(ctx: TheirContext) -> str: return "x"
FastMCP("x").tool(context)
print(json.dumps(told))
"""


def test_markers_of_other_sdks_are_refused_wherever_a_function_is_registered() -> None:
    done = subprocess.run(
        [str(interpreter(FASTMCP_4)), "-c", FOREIGN],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout)
    # A resolver of the official SDK is run by MCPServer's tools and resolvers.
    resolved = {"MCPServer tool resolve", "MCPServer resolver resolve"}
    # Fails for another reason: the type itself has no schema.
    assert {name for name, words in told.items() if words == "accepted"} == resolved
    assert "import CurrentAccessToken from mcpace.fastmcp" in told["FastMCP tool token"]
    assert "who could forge it" in told["MCPServer tool token"]
    assert "ctx.set_state" in told["FastMCP tool session"]
    assert "lifespan" in told["FastMCP prompt shared"]


def own(value: Any = CurrentAccessToken()) -> str:  # noqa: B008
    return str(value)


def resolving(value: Annotated[int, Resolve(lambda: 1)]) -> str:
    return str(value)


def test_a_marker_of_one_face_is_refused_by_the_other() -> None:
    server = MCPServer("x")
    with pytest.raises(InvalidSignature, match=r"mcpace\.fastmcp\.FastMCP"):
        server.tool()(own)
    with pytest.raises(InvalidSignature, match=r"mcpace\.fastmcp\.FastMCP"):
        server.prompt()(own)
    # Resolvers are of tools.
    with pytest.raises(InvalidSignature, match="tools"):
        server.prompt()(resolving)
    with pytest.raises(InvalidSignature, match="Resolve"):
        FastMCP("x").tool(resolving)


Aliased = TypeAliasType("Aliased", Annotated[int, Resolve(lambda: 1)])


def test_a_marker_behind_a_type_alias_is_found() -> None:
    def takes(value: Aliased) -> str:
        return str(value)

    with pytest.raises(InvalidSignature, match="Resolve"):
        MCPServer("x").prompt()(takes)


def test_dependencies_that_nobody_can_fill_in_are_refused() -> None:
    def needs(user: str) -> str:
        return user

    def refers(user: str = CallArgument("owner")) -> str:
        return user

    mcp = FastMCP("x")
    with pytest.raises(InvalidSignature, match="nobody fills it in"):
        mcp.tool(lambda value=Depends(needs): 1, name="t")  # noqa: B008
    with pytest.raises(InvalidSignature, match="no parameter 'owner'"):
        mcp.tool(lambda value=Depends(refers): 1, name="t")  # noqa: B008
    mcp.tool(lambda owner, value=Depends(refers): 1, name="t")  # noqa: B008


def test_the_names_of_fastmcp_s_markers_are_those_that_the_face_exports() -> None:
    assert set(face.__all__) >= FASTMCP_MARKERS
    for name in face.__all__:
        thing = getattr(face, name)
        made = name.startswith("Current") or name in ("Depends", "CallArgument", "TokenClaim", "Progress", "Dependency")
        assert made == (name in FASTMCP_MARKERS), (name, thing)
    assert isinstance(Progress(), face.Dependency)
