"""Functions that look for their request by themselves are recognised; others are not held back."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable
from typing import Any

import pytest

from mcpace.server.adopt.summary import Left, Summary
from mcpace.server.lookout import looks_around

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


def recursive(depth: int) -> int:
    return depth and recursive(depth - 1)


@pytest.mark.parametrize("function", [plain, recursive, Tools().plain, closing_over(3), functools.partial(plain, "a")])
def test_what_minds_its_own_business_is_adopted(function: Callable[..., Any]) -> None:
    assert looks_around(function, server) is None


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
    ],
)
def test_what_looks_for_its_request_stays(function: Callable[..., Any]) -> None:
    assert looks_around(function, server) == "it uses get_context"


@pytest.mark.parametrize("function", [uses_server, closing_over(server)])
def test_what_uses_its_server_stays(function: Callable[..., Any]) -> None:
    assert looks_around(function, server) == "it uses its server"
    assert looks_around(function, object()) is None


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
