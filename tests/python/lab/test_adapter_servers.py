"""Every adapter's server program, started for real, over a real Redis and our product API: equal answers, or an error.

One text for each call, which all servers are held to: what is compared under load has to be the same work. Builds are
kept under `target/adapters`. Releases that would take long to build, or that are there for their age, are marked
`adapters` and run by `make adapters`; nothing is skipped for a toolchain that is missing.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpace import __version__
from mcpace.lab import paths
from mcpace.lab.adapters import subject, toml_file
from mcpace.lab.adapters.adapter import InstallKind, Role
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.errors import ProgramDied, Unsupported
from mcpace.lab.servers.server_program import ServerProgram, State
from mcpace.lab.servers.shop import NOBODY, Shop, cart_items, user_record
from support.http_client import HttpClient

ROOT = Path(__file__).resolve().parents[3]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "adapters"

LIMIT_S = 60.0
Way = tuple[str, State]
REVISION = "2025-06-18"

# The newest release of each generation, and on request the oldest ones.
PYPI = {"python": ["2.3.0", "1.30.0"], "fastmcp": ["4.1.6"]}
OLDER = {"python": ["1.12.1", "1.8.0"], "fastmcp": ["3.4.11", "2.14.7"]}
SLOW = {InstallKind.CARGO}

# Unsupported combinations of mode and state. The list is strict: a combination that works must not be listed.
JSON_WITH_SESSIONS = {("json", "stateful"), ("json-nodelay", "stateful")}
UNSUPPORTED: dict[str, set[Way]] = {
    "rmcp@0.16.0": JSON_WITH_SESSIONS | {("json", "stateless"), ("json-nodelay", "stateless")},
    "rmcp@3.9.0": JSON_WITH_SESSIONS,
    "java@2.1.0": {("json", "stateful"), ("sse", "stateless")},
}

# Releases that put words of their own before those of any error.
TALKATIVE = {"python@1.12.1", "python@1.8.0"}

Call = tuple[str, dict[str, Any], str, bool]
"""Tool, arguments, the text that it must answer, whether as an error."""

WORDS = 'tab\t, line\n, "quotes", \\, é, 你好, 🙂, \u2028, <&>'


@dataclass(frozen=True)
class Release:
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def releases() -> Iterator[Any]:
    """Parametrizes a test with the releases. Marks those that don't run every day."""
    known = toml_file.load_all()
    for name, adapter in known.items():
        if not adapter.has_role(Role.SERVER):
            continue
        kind = adapter.install.kind
        if kind is InstallKind.PYPI:
            newest, older = PYPI[name], OLDER[name]
        elif kind is InstallKind.OWN:
            newest, older = ["latest"], []
        else:
            versions = subject.locked_versions(adapter)
            newest, older = (versions[-1:], versions[:-1]) if kind in SLOW else (versions, [])
        for version in newest:
            yield pytest.param(Release(name, version), id=f"{name}-{version}")
        for version in older:
            yield pytest.param(Release(name, version), id=f"{name}-{version}", marks=pytest.mark.adapters)


def has_quick_shop(release: Release) -> bool:
    server = toml_file.load_all()[release.name].server
    return server is not None and "shop-quick" in server.also_for


pytestmark = pytest.mark.network
EVERY = pytest.mark.parametrize("release", list(releases()))


@pytest.fixture(scope="module", autouse=True)
def cache() -> Iterator[None]:
    """Uses the cache of the other tests' builds, where crates are built quickly; or the one of the environment."""
    with pytest.MonkeyPatch.context() as patch:
        if paths.CACHE_VARIABLE not in os.environ:
            patch.setenv(paths.CACHE_VARIABLE, str(BUILT))
            for setting, value in {"OPT_LEVEL": "0", "LTO": "off", "CODEGEN_UNITS": "16"}.items():
                patch.setenv(f"CARGO_PROFILE_RELEASE_{setting}", value)
        yield


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Shop() as running:
        yield running


def start(
    release: Release, mode: str, state: State = "stateless", workload: str | None = None, **options: Any
) -> ServerProgram:
    resolved = subject.resolve_subject(f"{release}:{mode}", role=Role.SERVER)
    environment = release_environment.ensure_environment(
        resolved.adapter, resolved.version, role=Role.SERVER, workload=workload
    )
    command = resolved.adapter.server_command(environment)
    return ServerProgram.start(command, mode=mode, state=state, environment=environment, **options)


@contextmanager
def running(release: Release, mode: str, state: State = "stateless", **options: Any) -> Iterator[ServerProgram]:
    """Runs a server that must end when its stdin ends, before any signal."""
    with start(release, mode, state, **options) as server:
        yield server
        server._stdin.close()
        ends(server.pid)
    assert server._process.returncode == 0, server.stderr_tail


def every_way(release: Release) -> list[Way]:
    states: tuple[State, ...] = ("stateless", "stateful")
    return [
        (mode, state) for mode in toml_file.load_all()[release.name].supported_modes(Role.SERVER) for state in states
    ]


def ways(release: Release) -> list[Way]:
    """Combinations of mode and state that the release supports."""
    return [way for way in every_way(release) if way not in UNSUPPORTED.get(str(release), ())]


@EVERY
def test_every_server_gives_the_same_answers(release: Release, shop: Shop) -> None:
    for mode, state in {mode: (mode, state) for mode, state in reversed(ways(release))}.values():
        hold_to_answers(release, mode, state, shop, "shop")


@pytest.mark.parametrize("release", [entry for entry in releases() if has_quick_shop(entry.values[0])])
def test_quicker_libraries_give_the_same_answers(release: Release, shop: Shop) -> None:
    mode, state = ways(release)[0]
    hold_to_answers(release, mode, state, shop, "shop-quick")


def hold_to_answers(release: Release, mode: str, state: State, shop: Shop, workload: str) -> None:
    """Calls every tool of a server and compares the answers and what is left in Redis."""
    account = shop.open(quick=workload == "shop-quick")
    with (
        running(release, mode, state, workload=workload, env=account.environment()) as server,
        Connection(server.url, state) as connection,
    ):
        assert server.ready.version in (release.version, __version__)
        assert server.ready.workers == 1
        listed = {tool["name"]: tool["inputSchema"] for tool in connection.result("tools/list")["tools"]}
        assert {name: asked(schema) for name, schema in listed.items()} == SCHEMAS
        for tool, arguments, text, failed in calls(shop):
            answer = connection.outcome(tool, arguments)
            if failed and str(release) in TALKATIVE:
                text = f"Error executing tool {tool}: {text}"
            assert answer == (text, failed), f"{release}:{mode} {tool}({json.dumps(arguments)[:200]})"
            kind = "text/event-stream" if mode.startswith("sse") else "application/json"
            assert connection.reply.headers.get_content_type() == kind, f"{mode}: {tool}"
        # Quicker libraries are in an environment of their own, and loaded at the first call.
        loaded = Path(f"/proc/{server.pid}/maps").read_text()
        assert ("/wreq/" in loaded) == (workload == "shop-quick")
    with account.connect() as redis:
        assert redis.send_command("GET", "orders:5") == b"2"
        first, second = (shop.price(items) for items in (ORDER, ORDER[:1]))
        assert redis.send_command("HGET", "user:5", "spent") == str(first + second).encode()
        assert redis.send_command("LRANGE", "history:5", 0, -1) == [str(second).encode(), str(first).encode()]


@EVERY
def test_every_server_keeps_sessions(release: Release) -> None:
    """`initialize` returns a session id, which every call then carries."""
    way = next(way for way in ways(release) if way[1] == "stateful")
    with running(release, *way) as server, Connection(server.url, way[1]) as connection:
        assert connection.session
        assert connection.outcome("echo", {"text": "hi"}) == ("hi", False)
        connection.end_session()


@EVERY
def test_every_server_ends_when_told(release: Release) -> None:
    """By SIGTERM; that it ends with its stdin, all the other tests see. Without a shop it has no shop tools, and a call
    that waits holds nobody up."""
    mode, state = ways(release)[0]
    server = start(release, mode, state)
    try:
        with Connection(server.url, state) as first, Connection(server.url, state) as second:
            listed = {tool["name"] for tool in second.result("tools/list")["tools"]}
            assert listed == {"echo", "greet", "double", "wait", "work", "payload"}
            first.begin("tools/call", {"name": "wait", "arguments": {"ms": 600_000}})
            assert second.outcome("echo", {"text": "meanwhile"}) == ("meanwhile", False)
        os.kill(server.pid, signal.SIGTERM)
        ends(server.pid)
    finally:
        server.close()
    assert server._process.returncode == 0, server.stderr_tail


@EVERY
def test_what_a_server_cannot_do_it_says(release: Release) -> None:
    with pytest.raises(Unsupported):
        resolved = subject.resolve_subject(str(release), role=Role.SERVER)
        environment = release_environment.ensure_environment(resolved.adapter, resolved.version, role=Role.SERVER)
        ServerProgram.start(resolved.adapter.server_command(environment), mode="carrier-pigeon")
    for mode, state in set(every_way(release)) - set(ways(release)):
        with pytest.raises(Unsupported):
            start(release, mode, state)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ProgramDied, match=r"exited with code 1 .*stderr"),
    ):
        start(release, *ways(release)[0], port=taken.getsockname()[1])


@EVERY
def test_a_shop_that_is_not_there_is_an_error_and_no_end(release: Release) -> None:
    nowhere = {"SHOP_API": "http://127.0.0.1:1", "SHOP_REDIS": "redis://127.0.0.1:1/0"}
    mode, state = ways(release)[0]
    with running(release, mode, state, env=nowhere) as server, Connection(server.url, state) as connection:
        for tool, arguments in (("search_products", {"query": "x"}), ("get_user_cart", {"user_id": 1})):
            assert connection.outcome(tool, arguments)[1], tool
        assert connection.outcome("echo", {"text": "still here"}) == ("still here", False)


HOLDER = """
import sys
from mcpace.lab.servers.server_program import ServerProgram
server = ServerProgram.start(sys.argv[3:], mode=sys.argv[1], state=sys.argv[2])
print(server.pid, flush=True)
sys.stdin.read()
"""


@EVERY
def test_every_server_ends_when_whoever_started_it_is_killed(release: Release) -> None:
    resolved = subject.resolve_subject(str(release), role=Role.SERVER)
    environment = release_environment.ensure_environment(resolved.adapter, resolved.version, role=Role.SERVER)
    command = [sys.executable, "-c", HOLDER, *ways(release)[0], *resolved.adapter.server_command(environment)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        handle = os.pidfd_open(pid)
        holder.kill()
    assert select.select([handle], [], [], LIMIT_S)[0], "it lives on"
    os.close(handle)


ORDER = [{"product_id": 3, "quantity": 2}, {"product_id": 99_999, "quantity": 1}]

# The properties that each tool's schema has, and whether they are required.
SCHEMAS = {
    "echo": {"text": True},
    "greet": {"name": True},
    "double": {"n": True},
    "wait": {"ms": True},
    "work": {"us": True},
    "payload": {"bytes": True},
    "search_products": {"query": True, "limit": False},
    "get_user_cart": {"user_id": True},
    "checkout": {"user_id": True, "items": True},
}


def asked(schema: dict[str, Any]) -> dict[str, bool]:
    return {name: name in schema.get("required", []) for name in schema["properties"]}


def calls(shop: Shop) -> Iterator[Call]:
    """A call of every tool, with values that languages may write differently."""
    yield "echo", {"text": WORDS}, WORDS, False
    yield "echo", {"text": ""}, "", False
    yield "greet", {"name": "Zoë"}, "Hello, Zoë!", False
    yield "double", {"n": 21}, "42", False
    yield "double", {"n": -4_000_000_000}, "-8000000000", False
    yield "wait", {"ms": 0}, "waited", False
    yield "wait", {"ms": 2}, "waited", False
    yield "work", {"us": 50}, "worked", False
    yield "payload", {"bytes": 0}, "", False
    yield "payload", {"bytes": 100_000}, "x" * 100_000, False
    yield "search_products", {"query": "lamp"}, shop.search("lamp", 10), False
    yield "search_products", {"query": "Wireless Head", "limit": 3}, shop.search("Wireless Head", 3), False
    for query in ("a&limit=1", "50% + é", "no such thing anywhere", "#1"):
        yield "search_products", {"query": query, "limit": 2}, shop.search(query, 2), False
    for user in (7, 8):  # a full cart and an empty one
        items = [{"product_id": product, "quantity": quantity} for product, quantity in cart_items(user)]
        told = {"user": user_record(user), "items": items, "count": len(items)}
        yield "get_user_cart", {"user_id": user}, compact(told), False
    yield "get_user_cart", {"user_id": NOBODY}, f"no user {NOBODY}", True
    for number, items in enumerate((ORDER, ORDER[:1]), 1):
        told = {"order": number, "total_cents": shop.price(items), "items": len(items)}
        yield "checkout", {"user_id": 5, "items": items}, compact(told), False


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def ends(pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        assert select.select([handle], [], [], LIMIT_S)[0], "it lives on"
    finally:
        os.close(handle)


class Connection(HttpClient):
    """One plain HTTP connection that reads every answer to its end."""

    def __init__(self, url: str, state: State) -> None:
        parts = urllib.parse.urlsplit(url)
        assert parts.hostname == "127.0.0.1" and parts.port is not None
        super().__init__(parts.port, path=parts.path, revision=REVISION)
        if state == "stateful":
            self.initialize(REVISION)
            self.notify("notifications/initialized")

    def __enter__(self) -> Connection:
        return self

    def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Makes a request and returns its result."""
        answer = self.ask(method, params)
        assert self.reply.status == 200 and "result" in answer, (self.reply.status, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def outcome(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Calls a tool.

        Returns its text and whether it is an error. The result has one block and no structured copy.
        """
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert "structuredContent" not in result
        [block] = result["content"]
        assert block["type"] == "text"
        return block["text"], result.get("isError", False)
