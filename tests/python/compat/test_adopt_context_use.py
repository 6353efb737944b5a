"""Functions that access their request without a parameter are recognised; all others use the fast path."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import types
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from mcpace.server.adopt.summary import Left, Summary
from mcpace.server.registration.context_use_scan import find_context_use
from support.adoption import ROOT, SDKS, Sdk, interpreter

server = types.SimpleNamespace(name="a server")


def get_context() -> Any:
    raise AssertionError("only named here")


def plain(word: str) -> str:
    return json.dumps({"word": word.upper(), "again": [one * 2 for one in word]})


def looks(word: str) -> str:
    return f"{get_context().name} {word}"


def helper() -> Any:
    return looks("x")


def by_helper() -> Any:
    return helper()


def in_a_comprehension() -> list[Any]:
    return [get_context() for _ in range(2)]


def within() -> Any:
    def inner() -> Any:
        return get_context()

    return inner()


def uses_server() -> str:
    return str(server.name)


def closing_over(value: Any) -> Callable[[], Any]:
    def function() -> Any:
        return value

    return function


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


class Tools:
    def plain(self) -> str:
        return "plain"

    def looks(self) -> Any:
        return helper()


def makes_tools() -> Any:
    return Tools().looks()


def asks_first(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        get_context()
        return function(*arguments)

    return wrapper


class Inherits(Tools):
    @property
    def looked(self) -> Any:
        return helper()


class Looks(Inherits):
    pass


looking = Looks()


def uses_an_instance() -> Any:
    return looking.looked


class Order(BaseModel):
    """A model that is built on first use, because it names a class that is defined later."""

    items: list[Item]


class Item(BaseModel):
    name: str


def names_a_model_that_is_not_built(count: int) -> int:
    return len(Order(items=[Item(name="a")] * count).items)


def recursive(depth: int) -> int:
    return depth and recursive(depth - 1)


@pytest.mark.parametrize("function", [plain, recursive, Tools().plain, closing_over(3), functools.partial(plain, "a")])
def test_what_minds_its_own_business_is_adopted(function: Callable[..., Any]) -> None:
    assert find_context_use(function, server) is None


@pytest.mark.parametrize(
    "function",
    [
        looks,
        helper,
        by_helper,
        in_a_comprehension,
        within,
        decorated(looks),
        functools.partial(looks, "a"),
        closing_over(looks),
        Tools().looks,
        makes_tools,
        asks_first(plain),
        uses_an_instance,
    ],
)
def test_what_looks_for_its_request_stays(function: Callable[..., Any]) -> None:
    assert find_context_use(function, server) == "it uses get_context"


@pytest.mark.parametrize("function", [uses_server, closing_over(server)])
def test_what_uses_its_server_stays(function: Callable[..., Any]) -> None:
    assert find_context_use(function, server) == "it uses its server"
    assert find_context_use(function, object()) is None


def test_a_model_is_not_built_by_looking_at_it() -> None:
    assert not Order.__pydantic_complete__
    assert find_context_use(names_a_model_that_is_not_built, server) is None
    assert not Order.__pydantic_complete__


# Documented public functions and classes of the SDKs that reach a request from anywhere.
REACH = {
    "mcp-1": {"mcp.server.auth.middleware.auth_context": "get_access_token"},
    "mcp-2": {
        "mcp.server.auth.middleware.auth_context": "get_access_token",
        "mcp.server.mcpserver": "authenticated_principal",
    },
    "fastmcp-3": {
        "fastmcp.server.dependencies": "get_access_token get_context get_http_headers get_http_request get_server "
        "CurrentAccessToken CurrentContext CurrentFastMCP CurrentHeaders CurrentRequest TokenClaim",
        "fastmcp": "Client Context FastMCP",
    },
    "fastmcp-4": {
        "fastmcp.server.dependencies": "get_access_token get_context get_http_headers get_http_request get_server "
        "get_session CurrentAccessToken CurrentContext CurrentFastMCP CurrentHeaders CurrentRequest TokenClaim",
        "fastmcp": "Client Context FastMCP",
    },
}
# Types that tools return or raise.
PLAIN = {
    "mcp-1": {"mcp.types": "TextContent CallToolResult", "mcp.server.fastmcp": "Image"},
    "mcp-2": {"mcp_types": "TextContent CallToolResult", "mcp.server.mcpserver": "Image"},
    "fastmcp-3": {"fastmcp.utilities.types": "Image Audio File", "fastmcp.exceptions": "ToolError"},
    "fastmcp-4": {"fastmcp.utilities.types": "Image Audio File", "fastmcp.exceptions": "ToolError"},
}
PROBE = """
import importlib, json, sys
from mcpace.server.registration.context_use_scan import find_context_use
from mcpace.server.registration import context_use_scan
context_use_scan.WAYS = frozenset()  # by the SDK's own code alone
asked = json.loads(sys.argv[1]).items()
values = {name: getattr(importlib.import_module(module), name) for module, names in asked for name in names.split()}
found = {}
for name, value in values.items():
    namespace = {"value": value}
    exec("def tool(): return value", namespace)
    found[name] = find_context_use(namespace["tool"], None)
print(json.dumps(found))
"""


@pytest.mark.network
@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.name)
def test_what_reaches_a_request_is_found_in_the_sdks_own_code(sdk: Sdk) -> None:
    def found(names: dict[str, str]) -> dict[str, str | None]:
        command = [str(interpreter(sdk)), "-W", "ignore", "-c", PROBE, json.dumps(names)]
        variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FASTMCP_CHECK_FOR_UPDATES": "off"}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        told: dict[str, str | None] = json.loads(done.stdout)
        return told

    assert {name: why for name, why in found(REACH[sdk.name]).items() if why != f"it uses {name}"} == {}
    assert {name: why for name, why in found(PLAIN[sdk.name]).items() if why is not None} == {}


def test_what_became_of_it_is_said() -> None:
    some = Summary("SDK", ["a", "b"], [Left("c", "it takes a context"), Left("d", "it takes a context")], 1, 0, 2)
    assert some.sentences() == (
        "SDK: adopted 2 of 4 tools; 2 run in the SDK: c, d (it takes a context)",
        "1 resource, 2 prompts and all lists run in the SDK",
    )
    many = Summary("SDK", [], [Left(name, "why") for name in "abcdef"])
    assert many.sentences() == ("SDK: adopted 0 of 6 tools; 6 run in the SDK: a, b, c and 3 more (why)",)
    assert Summary("SDK", ["a"]).sentences() == ("SDK: adopted 1 of 1 tool",)
    assert Summary("SDK", whole="it is odd").sentences() == ("SDK: every request runs in the SDK: it is odd",)
