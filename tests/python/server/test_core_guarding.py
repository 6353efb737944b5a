"""The compiled part of the Python server: guards with permissions and keys in Python."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mcpace import _core
from mcpace.server.auth.guards import Denied
from support.core_server import coroutine, eventually, listed, serving, sync
from support.http_client import HttpClient

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def verify(token: str) -> Any:
    who, _, scopes = token.partition(":")
    return SimpleNamespace(client_id=who, scopes=scopes.split(",") if scopes else [], expires_at=None)


@contextmanager
def guarded(
    guard: _core.Guard, limiter: _core.Limiter | None = None, **options: Any
) -> Iterator[Callable[..., HttpClient]]:
    """A server with one guarded tool, and a function that connects as the caller that a token names."""
    made = _core.Server("guarded", "1", limiter=limiter)
    made.add_tool(listed("tool"), sync(lambda: "done"), guard=guard)
    known = {"token_verifier": verify, "resource": "https://mcp.example/mcp"}
    with serving(made, **{**known, **options}) as connect:

        def of(token: str) -> HttpClient:
            wire = connect()
            wire.headers = {"Authorization": f"Bearer {token}"}
            return wire

        yield of


def refusal(wire: HttpClient) -> dict[str, Any]:
    answer = wire.ask("tools/call", {"name": "tool", "arguments": {}})
    assert "error" in answer, answer
    return answer["error"]


def names(wire: HttpClient) -> list[str]:
    return [tool["name"] for tool in wire.ask("tools/list")["result"]["tools"]]


def test_scopes_run_no_python_and_are_told() -> None:
    with guarded(_core.Guard(scopes=["read", "write"])) as of:
        params = {"name": "tool", "arguments": {}, "_meta": MODERN}
        wire = of("me:read")
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "tool"}
        answer = wire.ask("tools/call", params, **headers)
        assert answer["error"]["data"] == {"requiredScopes": ["read", "write"]}
        assert 'scope="read write"' in wire.reply.headers["WWW-Authenticate"]
        assert of("me:write,read").text("tool") == "done"


@pytest.mark.parametrize("kind", ["sync", "async", "method", "async-method"])
def test_a_permission_decides_and_sees_who_asks(kind: str) -> None:
    seen: list[Any] = []

    def check(asked: _core.AccessRequest) -> None:
        seen.append((asked.kind, asked.name, asked.uri, asked.principal.client_id, asked.session_id, asked.listing))
        assert asked.headers is not None and asked.headers["authorization"].startswith("Bearer ")
        if asked.principal.client_id != "alice":
            raise Denied("only for Alice", scopes=["alice"])

    async def later(asked: _core.AccessRequest) -> None:
        await asyncio.sleep(0)
        check(asked)

    class Checks:
        def __call__(self, asked: _core.AccessRequest) -> None:
            check(asked)

    class ChecksLater:
        async def __call__(self, asked: _core.AccessRequest) -> None:
            await later(asked)

    permission = {"sync": check, "async": later, "method": Checks(), "async-method": ChecksLater()}[kind]
    with guarded(_core.Guard(permissions=[permission])) as of:
        alice, bob = of("alice"), of("bob")
        # More calls than a function needs before it runs inline.
        for _ in range(40):
            assert alice.text("tool") == "done"
            error = refusal(bob)
            assert (error["code"], error["message"]) == (-32003, "only for Alice")
            assert error["data"] == {"requiredScopes": ["alice"]}
        assert names(alice) == ["tool"]
        assert names(bob) == []
    assert ("tool", "tool", None, "alice", None, False) in seen
    assert ("tool", "tool", None, "bob", None, True) in seen


@pytest.mark.parametrize("answer", [True, None])
def test_a_permission_agrees_by_true_or_nothing(answer: bool | None) -> None:
    with guarded(_core.Guard(permissions=[lambda asked: answer])) as of:
        assert of("me").text("tool") == "done"


def test_false_refuses_without_a_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with guarded(_core.Guard(permissions=[lambda asked: False])) as of:
        assert refusal(of("me")) == {"code": -32003, "message": "not permitted"}
    assert caplog.records == []


class Secret(Exception):
    def __str__(self) -> str:
        return "the password is hunter2"


def _raises(asked: Any) -> None:
    raise Secret


async def _raises_later(asked: Any) -> None:
    raise Secret


def _gives_rubbish(asked: Any) -> Any:
    return "yes"


def _gives_a_coroutine(asked: Any) -> Any:
    return _raises_later(asked)


def _gives_a_broken_denial(asked: Any) -> Any:
    denied = Denied("no")
    denied.scopes = 5  # type: ignore[assignment]
    raise denied


@pytest.mark.parametrize(
    "permission", [_raises, _raises_later, _gives_rubbish, _gives_a_coroutine, _gives_a_broken_denial]
)
def test_a_permission_that_fails_refuses_and_is_logged(
    permission: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with guarded(_core.Guard(permissions=[permission])) as of:
        wire = of("me")
        for _ in range(20):
            assert refusal(wire) == {"code": -32003, "message": "not permitted"}
        assert names(wire) == []
    logged = {record.getMessage() for record in caplog.records if record.levelno == logging.ERROR}
    assert logged == {f"the permission {permission.__qualname__} failed, which refuses"}
    assert all(record.exc_info for record in caplog.records)


def test_a_permission_that_never_answers_refuses(caplog: pytest.LogCaptureFixture) -> None:
    cancelled = threading.Event()

    async def never(asked: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with guarded(_core.Guard(permissions=[never], permission_timeout_s=0.05)) as of:
        assert refusal(of("me")) == {"code": -32003, "message": "not permitted"}
        eventually(cancelled.is_set)
    assert "what is asked by a guard failed" in caplog.text
    assert "no answer within 0.05 seconds" in caplog.text


def test_a_slow_permission_holds_up_nobody_else() -> None:
    held = threading.Event()

    def slow(asked: _core.AccessRequest) -> None:
        if asked.principal.client_id == "slow":
            held.wait(10)

    with guarded(_core.Guard(permissions=[slow])) as of:
        waiting = of("slow")
        waiting.begin("tools/call", {"name": "tool", "arguments": {}})
        for _ in range(5):
            assert of("quick").text("tool") == "done"
        held.set()
        assert waiting.answer()["result"]["content"][0]["text"] == "done"


def test_limits_are_counted_on_a_clock_of_the_tests_own() -> None:
    limiter = _core.Limiter.memory(frozen=True)
    limits = [_core.RateLimit("two", 2, 60, algorithm="fixed-window"), _core.RateLimit("many", 100, 3600)]
    with guarded(_core.Guard(limits=limits), limiter) as of:
        me = of("me")
        assert [me.text("tool"), me.text("tool")] == ["done", "done"]
        assert refusal(me) == {"code": -32004, "message": "too many requests", "data": {"retryAfterMs": 60_000}}
        assert me.reply.headers["Retry-After"] == "60"
        assert of("you").text("tool") == "done"
        limiter.advance(59.5)
        assert refusal(me)["data"] == {"retryAfterMs": 500}
        limiter.advance(0.5)
        assert me.text("tool") == "done"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_key_says_who_is_counted_together(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    def domain(asked: _core.AccessRequest) -> str:
        who = asked.principal.client_id
        if who == "nobody":
            raise Denied("who are you?")
        return who.partition("@")[2] if "@" in who else 5  # type: ignore[return-value]

    async def later(asked: _core.AccessRequest) -> str:
        await asyncio.sleep(0)
        return domain(asked)

    by = domain if kind == "sync" else later
    limit = _core.RateLimit("one", 1, 60, by=by, algorithm="token-bucket")
    with guarded(_core.Guard(limits=[limit]), _core.Limiter.memory(frozen=True)) as of:
        assert of("a@one").text("tool") == "done"
        assert refusal(of("b@one"))["code"] == -32004
        assert of("a@two").text("tool") == "done"
        assert refusal(of("nobody"))["message"] == "who are you?"
        assert refusal(of("rubbish")) == {"code": -32003, "message": "not permitted"}
    assert "domain" in caplog.text or "later" in caplog.text


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_text_a_key_is_it_is_a_key(kind: str) -> None:
    """Every text is a valid key, including texts that resemble other answers."""
    keys = ["", "=", "==", "!", '!["no", []]', "a", "=a", "\N{SNOWMAN}"]

    def named(asked: _core.AccessRequest) -> str:
        return keys[int(asked.principal.client_id)]

    async def later(asked: _core.AccessRequest) -> str:
        return named(asked)

    limit = _core.RateLimit("one", 1, 60, by=named if kind == "sync" else later)
    with guarded(_core.Guard(limits=[limit]), _core.Limiter.memory(frozen=True)) as of:
        for number in range(len(keys)):
            assert of(str(number)).text("tool") == "done", keys[number]
            assert refusal(of(str(number)))["code"] == -32004, keys[number]


@pytest.mark.parametrize("words", ["", "!", "=", 'of "many" [words], {}', "line\nbreak", "\N{SNOWMAN}"])
def test_a_refusal_is_told_as_it_was_said(words: str) -> None:
    def deny(asked: _core.AccessRequest) -> None:
        raise Denied(words, scopes=["read", "a:b"])

    with guarded(_core.Guard(permissions=[deny])) as of:
        told = refusal(of("me"))
        assert (told["message"], told["data"]["requiredScopes"]) == (words, ["read", "a:b"])


def test_a_session_is_counted_by_its_id() -> None:
    limit = _core.RateLimit("one", 1, 60, by="session")
    with guarded(_core.Guard(limits=[limit]), _core.Limiter.memory(frozen=True), stateless=False) as of:
        first, second = of("me"), of("me")
        for wire in (first, second):
            own = wire.headers
            wire.initialize()
            wire.headers = {**wire.headers, **own}
            assert wire.text("tool") == "done"
            assert refusal(wire)["code"] == -32004


def test_a_result_over_the_bound_is_an_error_that_says_so() -> None:
    made = _core.Server("guarded", "1")
    guard = _core.Guard(max_result_bytes=200)

    async def later() -> str:
        return "x" * 300

    made.add_tool(listed("long"), sync(lambda: "x" * 300), guard=guard)
    made.add_tool(listed("long-later"), coroutine(later), guard=guard)
    made.add_tool(listed("short"), sync(lambda: "x" * 100), guard=guard)
    with serving(made) as connect:
        wire = connect()
        for _ in range(30):
            for tool in ("long", "long-later"):
                result = wire.call(tool)
                assert result["isError"] is True
                assert result["content"][0]["text"].startswith("the result is too long: 337 bytes of JSON, and no more")
            assert wire.text("short") == "x" * 100


def test_resources_templates_and_prompts_have_guards_too() -> None:
    made = _core.Server("guarded", "1")
    seen: list[tuple[str, str, str | None]] = []

    def check(asked: _core.AccessRequest) -> bool:
        seen.append((asked.kind, asked.name, asked.uri))
        return False

    guard = _core.Guard(permissions=[check])
    contents = sync(lambda **_: '{"contents": []}', output="finished")
    made.add_resource('{"uri": "book://one", "name": "one"}', contents, guard=guard)
    made.add_resource_template('{"uriTemplate": "note://{id}", "name": "note"}', contents, guard=guard)
    made.add_prompt('{"name": "sum-up"}', sync(lambda **_: '{"messages": []}', output="finished"), guard=guard)
    with serving(made) as connect:
        wire = connect()
        for method, params in [
            ("resources/read", {"uri": "book://one"}),
            ("resources/read", {"uri": "note://7"}),
            ("prompts/get", {"name": "sum-up"}),
        ]:
            assert wire.ask(method, params)["error"]["code"] == -32003
    assert seen == [
        ("resource", "book://one", None),
        ("template", "note://{id}", "note://7"),
        ("prompt", "sum-up", None),
    ]


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (
        lambda: _core.RateLimit("x", 1, 60, by="nobody"),
        lambda: _core.RateLimit("x", 1, 60, algorithm="guessing"),
        lambda: _core.RateLimit("x", 1, -1),
        lambda: _core.RateLimit("x", 1, 60, by=5),  # type: ignore[arg-type]
        lambda: _core.Guard(permissions=[5]),  # type: ignore[list-item]
        lambda: _core.Guard(timeout_s=-1),
        lambda: _core.Server("x", "1", on_limiter_down="guess"),
        lambda: _core.Limiter.memory().advance(1),
    ):
        with pytest.raises(_core.UsageProblem):
            wrong()
    made = _core.Server("x", "1")
    for guard in (_core.Guard(scopes=["two words"]), _core.Guard(limits=[_core.RateLimit("x", 0, 60)])):
        with pytest.raises(_core.RegistrationProblem, match='tool "tool"'):
            made.add_tool(listed("tool"), sync(lambda: "done"), guard=guard)
    made.add_tool(listed("tool"), sync(lambda: "done"))
