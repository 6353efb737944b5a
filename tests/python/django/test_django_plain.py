"""Plain functions on a Django server: the request cycle around them, and calls within the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from support.django_project import USER, server
from support.python_server import Client, served

# isort: split
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import connections, transaction
from rest_framework_services import ServiceSpec

from invoices.models import Customer
from mcpace import Context
from mcpace.django import MCPServer, Principal
from mcpace.server.auth.guards import requires
from mcpace.server.errors import MCPError, RegistrationError, ToolError
from mcpace.types import Completion


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The signals of calls in order, without those of requests."""
    found: list[str] = []

    def started(sender: Any, **_: Any) -> None:
        found.append("started")

    def finished(sender: Any, **_: Any) -> None:
        found.append("finished")

    request_started.connect(started)
    request_finished.connect(finished)
    yield found
    request_started.disconnect(started)
    request_finished.disconnect(finished)


@pytest.fixture
def open_connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The open connections that calls made on their own threads, with connections kept between calls."""
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 600)
    found: list[Any] = []
    backend = type(connections["default"])
    connect, close = backend.connect, backend._close

    def connecting(self: Any) -> None:
        connect(self)
        found.append(self)

    def closing(self: Any) -> None:
        close(self)
        if self in found:
            found.remove(self)

    monkeypatch.setattr(backend, "connect", connecting)
    monkeypatch.setattr(backend, "_close", closing)
    return found


def filled(made: MCPServer) -> MCPServer:
    """A server with one component of each kind, all of which query the database."""

    @made.tool()
    def count(ctx: Context) -> int:
        return Customer.objects.count()

    @made.tool()
    async def later() -> int:
        return await Customer.objects.acount()

    @made.resource("customers://count")
    def static() -> str:
        return str(Customer.objects.count())

    @made.resource("customers://{name}")
    def family(name: str) -> str:
        return str(Customer.objects.filter(name=name).count())

    @made.prompt()
    def greet(name: str) -> str:
        """Greets."""
        return f"Greet {name}, one of {Customer.objects.count()}"

    @made.completion()
    def complete(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[one.name for one in Customer.objects.filter(name__startswith=argument.value)])

    return made


GREET = {"type": "ref/prompt", "name": "greet"}
USES = [
    ("tools/call", {"name": "count", "arguments": {}}),
    ("tools/call", {"name": "later", "arguments": {}}),
    ("resources/read", {"uri": "customers://count"}),
    ("resources/read", {"uri": "customers://Ada"}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}},
    ),
]


@pytest.mark.parametrize(("method", "params"), USES)
def test_a_plain_function_runs_within_the_cycle(method: str, params: dict[str, Any], heard: list[str]) -> None:
    with served(filled(server())) as port:
        reply = Client(port).request(method, params)
        assert "result" in reply, reply
    assert heard == ["started", "finished"]


@pytest.mark.parametrize("tool", ["later", "service"])
def test_a_coroutine_function_leaves_no_connection_behind(tool: str, open_connections: list[Any]) -> None:
    """The thread of the connection ends with the call, so nothing could use the connection again."""
    made = filled(server())

    async def count() -> dict[str, int]:
        return {"n": await Customer.objects.acount()}

    spec = ServiceSpec(service=count, atomic=False, permission_classes=[])
    made.register_service_tool(name="service", spec=spec)
    with served(made) as port:
        for _ in range(3):
            assert not Client(port).call(tool).get("isError")
    assert open_connections == []


def test_a_refused_call_ends_the_cycle_too(heard: list[str]) -> None:
    """A call on the event loop that fails before its service runs, because of an unknown argument."""
    made = server()

    async def count() -> dict[str, int]:
        return {"n": await Customer.objects.acount()}

    made.register_service_tool(name="t", spec=ServiceSpec(service=count, atomic=False, permission_classes=[]))
    with served(made) as port:
        assert Client(port).call("t", nothing=1)["isError"]
    assert heard == ["started", "finished"]


def test_the_signature_stays_the_authors() -> None:
    made = filled(server())
    assert made.registry.tools["count"].listed()["inputSchema"]["properties"] == {}
    assert [one.name for one in made.registry.prompts["greet"].arguments] == ["name"]
    assert made.registry.prompts["greet"].description == "Greets."

    class Adds:
        """Adds."""

        def __call__(self, a: int, b: int = 1) -> int:
            return a + b

    made.add_tool(Adds(), "adds")
    assert made.registry.tools["adds"].listed()["inputSchema"]["required"] == ["a"]
    assert made.call_tool("adds", {"a": 1}).structured_content == {"result": 2}


def test_atomic_requests_are_a_plain_functions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    made = server()

    @made.tool()
    def fails() -> None:
        Customer.objects.create(name="plain")
        raise ToolError("no")

    with pytest.raises(RegistrationError, match="ATOMIC_REQUESTS"):

        @made.tool()
        async def refused() -> None: ...

    @made.tool()
    @transaction.non_atomic_requests
    async def exempt() -> int:
        return await Customer.objects.filter(name="plain").acount()

    with served(made) as port:
        assert Client(port).call("fails")["isError"]
        assert Client(port).call("exempt")["structuredContent"] == {"result": 0}


def test_nobody_completes_what_they_may_not_see() -> None:
    """An unknown name is no way around a permission."""
    made = server()
    asked: list[str] = []

    @made.prompt(permissions=[requires("admin")])
    def secret(name: str) -> str:
        return name

    @made.completion()
    def complete(ref: Any, argument: Any, context: Any) -> Completion:
        asked.append(argument.value)
        return Completion(values=[one.name for one in Customer.objects.all()])

    with served(made) as port:
        for name in ("secret", "nothing"):
            reference = {"type": "ref/prompt", "name": name}
            params = {"ref": reference, "argument": {"name": "name", "value": "A"}}
            assert "error" in Client(port).request("completion/complete", params)
    assert asked == []


# In this process -----------------------------------------------------------------------------------------------------


def guarded() -> MCPServer:
    made = server()

    @made.tool(permissions=[requires("admin")])
    def plain() -> str:
        return "secret"

    @made.tool(permissions=[requires("admin")])
    async def later() -> str:
        return "secret"

    return made


ADMIN = Principal(user=USER, scopes=("admin",))
OTHER = Principal(user=USER, scopes=("read",))


@pytest.mark.parametrize("tool", ["plain", "later"])
@pytest.mark.parametrize("principal", [None, OTHER])
def test_a_plain_function_is_guarded_within_the_process(tool: str, principal: Any) -> None:
    made = guarded()
    with pytest.raises(MCPError) as refused:
        made.call_tool(tool, principal=principal)
    assert refused.value.data == {"requiredScopes": ["admin"]}
    with pytest.raises(MCPError):
        asyncio.run(made.acall_tool(tool, principal=principal))
    assert made.call_tool(tool, principal=ADMIN).structured_content == {"result": "secret"}
    assert asyncio.run(made.acall_tool(tool, principal=ADMIN)).structured_content == {"result": "secret"}


def test_a_plain_functions_caller_is_no_user_alone() -> None:
    with pytest.raises(TypeError, match="principal=Principal"):
        guarded().call_tool("plain", user=USER)
    with pytest.raises(TypeError, match="principal=Principal"):
        asyncio.run(guarded().acall_tool("later", request=object()))
    with pytest.raises(ToolError, match="Unknown tool"):
        guarded().call_tool("nothing")


def test_a_plain_function_runs_where_it_is_called(heard: list[str]) -> None:
    """The call runs in the caller's thread and transaction, without an additional request cycle."""
    made = server()
    threads: list[int] = []

    @made.tool()
    def adds(name: str) -> int:
        threads.append(threading.get_ident())
        return Customer.objects.create(name=name).pk

    with transaction.atomic():
        assert made.call_tool("adds", {"name": "plainly inside"}).structured_content
        transaction.set_rollback(True)
    assert not Customer.objects.filter(name="plainly inside").exists()
    assert threads == [threading.get_ident()]
    assert heard == []
    made.call_tool_sync("adds", {"name": "plainly"})
    assert heard == []


def test_a_plain_function_that_fails_raises() -> None:
    made = server()

    @made.tool()
    def fails() -> None:
        raise ToolError("we are closed")

    with pytest.raises(ToolError, match="we are closed"):
        made.call_tool("fails")


def test_the_servers_own_guards_hold_for_specs_within_the_process() -> None:
    made = server(permissions=[requires("admin")], rate_limits="2/hour", max_result_bytes=200)
    spec = ServiceSpec(service=lambda *, user: {"text": "x" * len(user.username)}, permission_classes=[])
    made.register_service_tool(name="t", spec=spec)
    with pytest.raises(MCPError) as refused:
        made.call_tool("t", principal=OTHER)
    assert refused.value.data == {"requiredScopes": ["admin"]}
    assert made.call_tool("t", principal=ADMIN).structured_content == {"text": "xxxx"}
    with pytest.raises(ToolError, match="too long"):
        made.call_tool("t", principal=replace(ADMIN, user=User(pk=USER.pk, username="u" * 200)))
    with pytest.raises(MCPError) as limited:
        made.call_tool("t", principal=ADMIN)
    assert limited.value.code == -32004
