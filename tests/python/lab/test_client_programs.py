"""Client programs of SDKs other than the official Python SDK. Each is real and must keep the contract of adapters.

Tests of programs that take minutes to build, and of old releases, are marked `adapters` and run by `make adapters`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab import paths
from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.adapters.adapter import InstallKind
from mcpace.lab.clients.client_program import Answer, ClientProgram
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.errors import Unsupported
from support import echo_server
from support.echo_server import LIMIT_S

NEWEST = ("typescript@1.32.2", "typescript@2.4.0", "fastmcp@4.1.6", "go@1.8.0", "mcp-go@1.2.1", "langchain@0.3.2")
OLD = ("typescript@1.23.0", "fastmcp@2.11.2")
OLDER = (
    "typescript@1.10.0", "typescript@2.0.0", "fastmcp@2.10.0", "fastmcp@3.4.11", "langchain@0.1.0", "go@1.0.0",
    "mcp-go@0.32.0", "rmcp@0.9.0", "rmcp@0.16.0", "rmcp@3.9.0",
)  # fmt: skip
WITHOUT_OAUTH = {
    "go@1.0.0": "go-sdk 1.0.0 has no OAuth client",
    "langchain@0.1.0": "takes no authorization but headers",
}
NO_HANDSHAKE = "langchain"
"""Its `connect` asks nobody."""

BUILT = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target")) / "adapters"

pytestmark = pytest.mark.network


def subjects(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.adapters if name in OLDER else ()) for name in names]


EVERY = pytest.mark.parametrize("subject", subjects(*NEWEST, *OLD, *OLDER))


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with echo_server.over_http() as url:
        yield url


def client(subject: str) -> ClientProgram:
    resolved = adapter_subject.resolve_subject(subject)
    with pytest.MonkeyPatch.context() as patch:
        if resolved.adapter.install.kind is InstallKind.CARGO and paths.CACHE_VARIABLE not in os.environ:
            # Built quickly and not well, and so not where anybody measures them.
            patch.setenv(paths.CACHE_VARIABLE, str(BUILT))
            patch.setenv("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        environment = release_environment.ensure_environment(resolved.adapter, resolved.version)
    return ClientProgram.start(resolved.adapter.client_command(environment), environment=environment)


def asked(program: ClientProgram, cmd: str, **members: object) -> Answer:
    return program.send_command({"cmd": cmd, **members}, LIMIT_S)


@EVERY
def test_connects_again_and_again(subject: str, server_url: str) -> None:
    with client(subject) as program:
        assert program.version == subject.partition("@")[2]
        for auth in ({"kind": "none"}, {"kind": "bearer", "token": "t"}, {"kind": "none"}):
            connected = asked(program, "connect", url=server_url, auth=auth)
            assert connected.ok, connected
            assert connected.end_ns > connected.start_ns > 0
            if not subject.startswith(NO_HANDSHAKE):
                assert connected.result["server_name"] == "shop"
            listed = asked(program, "list_tools")
            assert listed.result == {"tools": 2, "names": ["echo", "fail"], "more": False}
            assert listed.start_ns >= connected.end_ns
            called = asked(program, "call_tool", name="echo", arguments={"text": "hi"})
            assert called.result == {"is_error": False, "text": "hi"}
            failed = asked(program, "call_tool", name="fail", arguments={})
            assert failed.ok and failed.result["is_error"], failed
            assert "on purpose" in failed.result["text"]
            assert asked(program, "disconnect").ok


@EVERY
def test_over_stdio(subject: str) -> None:
    command = echo_server.over_stdio()
    with client(subject) as program:
        for _ in range(2):
            assert asked(program, "connect", command=command).ok
            called = asked(program, "call_tool", name="echo", arguments={"text": "hi"})
            assert called.result == {"is_error": False, "text": "hi"}, called
            assert asked(program, "disconnect").ok


@EVERY
def test_goes_on_after_failures(subject: str, server_url: str) -> None:
    with client(subject) as program:
        assert asked(program, "list_tools").error_kind == "protocol"
        assert asked(program, "dance").error_kind == "protocol"
        refused = asked(program, "connect", url="http://127.0.0.1:1/mcp", timeout_s=10)
        if subject.startswith(NO_HANDSHAKE):
            refused = asked(program, "list_tools", timeout_s=10)
            assert asked(program, "disconnect").ok
        assert refused.error_kind == "connection" and refused.error_message, refused
        assert asked(program, "connect", url=server_url).ok
        assert asked(program, "connect", url=server_url).error_kind == "protocol"


@EVERY
def test_tells_a_silent_server(subject: str, server_url: str) -> None:
    """A server that accepts connections but never answers: the time limit applies, and the program stays usable."""
    with socket.socket() as silent, client(subject) as program:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        answer = asked(program, "connect", url=url, timeout_s=0.5)
        if subject.startswith(NO_HANDSHAKE):
            answer = asked(program, "list_tools", timeout_s=0.5)
            assert asked(program, "disconnect").ok
        assert (answer.ok, answer.error_kind) == (False, "timeout"), answer
        assert asked(program, "connect", url=server_url).ok


@EVERY
def test_authorizes_once_where_somebody_consents(subject: str) -> None:
    """The recorder's counters show how often the client registered."""
    target = _core.Target("notion", hold_s=0.05)
    recorder = _core.Recorder(target.url, extra_root=target.certificate_pem)
    try:
        with client(subject) as program:
            auth = {"kind": "oauth", "consent": "follow"}
            provider = asked(program, "provider", url=recorder.url, auth=auth)
            if subject in WITHOUT_OAUTH:
                assert provider.error_kind == "unsupported" or subject.startswith("langchain")
                connected = asked(program, "connect", url=recorder.url, auth=auth)
                assert connected.error_kind == "unsupported"
                assert WITHOUT_OAUTH[subject] in str(connected.error_message)
                return
            assert provider.ok, provider
            for _ in range(2):
                connected = asked(program, "connect", url=recorder.url, auth=auth)
                assert connected.ok, connected
                listed = asked(program, "list_tools")
                assert listed.ok and "greet" in listed.result["names"], listed
                assert asked(program, "disconnect").ok
    finally:
        recording = recorder.stop()
        target.stop()
    heads = [entry["event"]["request-head"] for entry in recording.events() if "request-head" in entry["event"]]
    registered = [head for head in heads if head["side"] == "front" and head["target"].endswith("/register")]
    assert len(registered) == (0 if subject in WITHOUT_OAUTH else 1)


@pytest.mark.parametrize("subject", ["typescript@1.32.2", "go@1.8.0", "mcp-go@1.2.1"])
def test_consent_that_a_program_cannot_give(subject: str) -> None:
    """Only Python's programs can open a browser."""
    with client(subject) as program:
        auth = {"kind": "oauth", "consent": "browser"}
        for command in ("provider", "connect"):
            answer = asked(program, command, url="http://127.0.0.1:1/mcp", auth=auth)
            assert answer.error_kind == "unsupported" and "browser" in str(answer.error_message)


@pytest.mark.parametrize(
    ("subject", "mode", "revision"),
    [
        ("typescript@2.4.0", None, "2025-11-25"),
        ("typescript@2.4.0", "auto", "2026-07-28"),
        ("fastmcp@4.1.6", "legacy", "2025-11-25"),
        ("fastmcp@4.1.6", None, "2026-07-28"),
        ("go@1.8.0", "legacy", "2025-11-25"),
        ("go@1.8.0", "2026-07-28", "2026-07-28"),
        ("mcp-go@1.2.1", "legacy", "2025-11-25"),
        ("mcp-go@1.2.1", None, "2026-07-28"),
    ],
)
def test_modes(subject: str, mode: str | None, revision: str) -> None:
    target = _core.Target("simple")
    try:
        with client(subject) as program:
            connected = asked(program, "connect", url=target.url, mode=mode)
            assert connected.result["protocol_version"] == revision, connected
    finally:
        target.stop()


@pytest.mark.parametrize("subject", ["typescript@1.32.2:auto", "fastmcp@2.11.2:auto", "mcp-go@1.2.1:legacy"])
def test_a_mode_that_a_release_has_not(subject: str, server_url: str) -> None:
    """The program itself reports a mode that its version lacks."""
    name, _, mode = subject.partition(":")
    with client(name) as program:
        answer = asked(program, "connect", url=server_url, mode=mode)
        assert answer.ok == (name == "mcp-go@1.2.1")
        assert answer.ok or answer.error_kind == "unsupported"


def test_langchain_in_one_session(server_url: str) -> None:
    with client("langchain@0.3.2") as program:
        assert asked(program, "connect", url=server_url, mode="session").ok
        assert asked(program, "list_tools").result["tools"] == 2
        called = asked(program, "call_tool", name="echo", arguments={"text": "hi"})
        assert called.result == {"is_error": False, "text": "hi"}
        assert asked(program, "disconnect").ok


@pytest.mark.parametrize(
    ("subject", "first"),
    [
        ("typescript@1.9.0", "1.10"),
        ("rmcp@0.8.5", "0.9"),
        ("go@0.8.0", "1.0"),
    ],
)
def test_releases_before_the_first(subject: str, first: str) -> None:
    with pytest.raises(Unsupported, match=f"{subject} has no client program here: .* is {first}$"):
        client(subject)
