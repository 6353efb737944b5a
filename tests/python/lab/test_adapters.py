"""Tests of adapter.toml, of the subjects that users type, and of the Python client program with a real server."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from mcpace.lab.adapters import toml_file
from mcpace.lab.adapters.adapter import Role
from mcpace.lab.adapters.subject import Resolved, parse_subject
from mcpace.lab.adapters.toml_file import load_adapter, load_all
from mcpace.lab.clients.client_program import ClientProgram
from mcpace.lab.clients.plan import Settings
from mcpace.lab.clients.run_clients import TargetRun, prepare
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.environments.environment import Environment
from mcpace.lab.environments.installers.built import copy_sources
from mcpace.lab.environments.installers.protocol import InstallRequest
from mcpace.lab.environments.releases import Exact, Newest
from mcpace.lab.errors import AdapterProblem, UnknownName, Unsupported, UsageProblem
from mcpace.lab.progress import Silent
from mcpace.lab.targets import parse_target
from support import echo_server
from support.echo_server import LIMIT_S

MINIMAL = """
format = 1
name = "toy"
title = "toy"
[install]
kind = "pypi"
package = "toy"
[client]
command = ["{python}", "{adapter}/client.py", "{}"]
transports = ["http"]
"""


def write(folder: Path, text: str) -> Path:
    place = folder / "toy"
    place.mkdir(parents=True, exist_ok=True)
    (place / "adapter.toml").write_text(text)
    return place


def test_our_own_adapters_load() -> None:
    python = load_all()["python"]
    assert python.install.package == "mcp"
    assert python.supported_modes() == ["2026-07-28", "auto", "legacy"]


def test_command_keeps_foreign_braces(tmp_path: Path) -> None:
    adapter = load_adapter(write(tmp_path, MINIMAL))
    environment = Environment(tmp_path, {"python": str(tmp_path / "bin" / "python")}, {})
    assert adapter.client_command(environment) == (
        str(tmp_path / "bin" / "python"),
        f"{adapter.folder}/client.py",
        "{}",
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("format = 1", "format = 2", "another format"),
        ('name = "toy"', 'name = "tool"', "isn't that of its folder"),
        ('"pypi"', '"rpm"', "unknown kind 'rpm'; known: pypi, cargo, go, npm, maven, own"),
        ('package = "toy"', "package = 5", "package must be a str, not 5"),
        ('["http"]', '"http"', "transports must be a list of strings"),
        ('package = "toy"', 'package = "toy"\npython = "three"', "is no range of versions"),
        ('package = "toy"', 'package = "toy"\nmargin_hours = true', "margin_hours must be a number"),
        ("[install]", "[install", "can't be read"),
        ("[client]", "[clients]", "has neither [client] nor [server]"),
        ("[client]", "[server]", "modes must be a list of strings, not None"),
        ("[client]", "[server]\nmodes = []", "modes must name at least one"),
        ('"pypi"', '"npm"', "the kind npm must name what its client is built of: [[client.releases]]"),
        ("[client]", "[[client.releases]]\nversions = '>=1'\nsources = []\n[client]", "the kind pypi builds nothing"),
    ],
)
def test_bad_files_are_named_with_their_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in MINIMAL
    with pytest.raises(AdapterProblem) as caught:
        load_adapter(write(tmp_path, MINIMAL.replace(old, new, 1)))
    assert says in str(caught.value)
    assert "adapter.toml" in str(caught.value)


def test_servers_load_with_their_modes() -> None:
    """A subject without a mode gets the first mode of its adapter."""
    servers = {name: adapter for name, adapter in load_all().items() if adapter.has_role(Role.SERVER)}
    assert {"python", "fastmcp", "mcpace-python"} <= set(servers)
    for name, adapter in servers.items():
        assert adapter.server is not None
        assert adapter.server.transports == ("http",)
        assert {"json", "sse"} <= set(adapter.supported_modes(Role.SERVER))
        assert parse_subject(f"{name}:json", load_all(), Role.SERVER).mode == "json"
    with pytest.raises(UnknownName, match="mode of python"):
        parse_subject("python:legacy", load_all(), Role.SERVER)


def test_clients_and_servers_have_environments_of_their_own() -> None:
    """Additional requirements of a server aren't installed into the environment of the release's client."""
    python = load_all()["python"]
    paths = {role: release_environment.environment_path(python, "1.30.0", role) for role in Role}
    assert paths[Role.CLIENT] != paths[Role.SERVER]


def test_a_workload_with_packages_of_its_own_has_its_own_environment() -> None:
    """The quick client libraries of one workload would change what redis-py does in the others."""
    python = load_all()["python"]
    plain, echo, quick = (
        release_environment.environment_path(python, "1.30.0", Role.SERVER, workload)
        for workload in (None, "echo", "shop-quick")
    )
    assert plain == echo != quick
    assert "wreq==0.13.0" in InstallRequest(python, "1.30.0", Role.SERVER, "shop-quick").extra_requirements
    assert "wreq==0.13.0" not in InstallRequest(python, "1.30.0", Role.SERVER, "shop").extra_requirements
    assert "wreq==0.13.0" not in InstallRequest(python, "1.30.0", Role.CLIENT, "shop-quick").extra_requirements


BUILT = (
    MINIMAL.replace('"pypi"', '"npm"')
    + """
[[client.releases]]
versions = "<2.0.0a1"
package = "old-toy"
sources = ["client", "client-1"]
[[client.releases]]
versions = ">=2.0.0a1"
sources = ["client", "client-2"]
"""
)


def test_a_client_is_built_of_what_its_release_needs(tmp_path: Path) -> None:
    adapter = load_adapter(write(tmp_path, BUILT))
    assert adapter.client_packages() == ["old-toy", "toy"]
    assert adapter.client_packages(Version("1.9")) == ["old-toy"]
    assert adapter.client_packages(Version("2.0.0-beta.1")) == ["toy"]
    for release, file in (("1.9", "client-1/own.mjs"), ("2.4.0", "client-2/own.mjs")):
        for name in ("client/shared.mjs", "client/own.mjs", file):
            (adapter.folder / name).parent.mkdir(exist_ok=True)
            (adapter.folder / name).write_text(name)
        copy = tmp_path / release
        copy_sources(InstallRequest(adapter, release), copy)
        assert (copy / "shared.mjs").read_text() == "client/shared.mjs"
        assert (copy / "own.mjs").read_text() == file


def test_a_release_without_a_client_is_unsupported_and_no_failure(tmp_path: Path) -> None:
    adapter = load_adapter(write(tmp_path, BUILT.replace('"<2.0.0a1"', '">=1.5,<2.0.0a1"')))
    assert adapter.covers_version(Version("1.5")) and not adapter.covers_version(Version("1.4"))
    ready = prepare(Resolved(adapter, "1.4.0", None), Silent())
    assert ready.error is None and ready.environment is None
    assert ready.unsupported == "toy@1.4.0 has no client program here: the first release with one is 1.5"
    with TargetRun([ready], parse_target("profile:simple"), Settings(trials=1)) as row:
        row.run_rounds(Silent())
        cases = row.cases()
    assert [(case.unsupported, case.error, case.failures) for case in cases] == [(ready.unsupported, None, [])] * 3


def test_the_variable_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, MINIMAL)
    monkeypatch.setenv(toml_file.ADAPTERS_VARIABLE, str(tmp_path))
    assert list(load_all()) == ["toy"]
    monkeypatch.setenv(toml_file.ADAPTERS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(AdapterProblem, match="MCPACE_ADAPTERS"):
        load_all()


def test_subjects() -> None:
    known = load_all()
    exact = parse_subject("python@1.12.1:legacy", known)
    assert isinstance(exact.selection, Exact)
    assert (str(exact), exact.mode) == ("python@1.12.1:legacy", "legacy")
    assert parse_subject("python", known).selection == Newest()
    assert parse_subject("python-sdk@1.x", known).adapter.name == "python"
    assert parse_subject("python@latest", known).selection == Newest()
    assert parse_subject("python@1.x", known).selection == Newest(1)


@pytest.mark.parametrize("text", ["python@", "python@1.0:", "python@one", "python@latest-1", "python@1.12.x"])
def test_bad_versions_say_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"write (SDK@VERSION|a number)"):
        parse_subject(text, load_all())


@pytest.mark.parametrize(
    ("text", "near"), [("pyton@1.0", "python"), ("Python@1.0", "python"), ("python@1.0:legasy", "legacy")]
)
def test_unknown_names_come_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean {near}") as caught:
        parse_subject(text, load_all())
    assert caught.value.exit_code == 2


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with echo_server.over_http() as url:
        yield url


def client(version: str) -> ClientProgram:
    adapter = load_all()["python"]
    environment = release_environment.ensure_environment(adapter, version)
    return ClientProgram.start(adapter.client_command(environment), environment=environment)


@pytest.mark.network
@pytest.mark.parametrize("version", ["1.8.0", "1.9.4", "1.12.1", "1.14.0", "1.30.0", "2.0.0", "2.3.0"])
def test_python_client_connects_again_and_again(version: str, server_url: str) -> None:
    with client(version) as program:
        assert program.version == version
        for auth in ({"kind": "none"}, {"kind": "bearer", "token": "t"}, {"kind": "none"}):
            connected = program.send_command({"cmd": "connect", "url": server_url, "auth": auth}, LIMIT_S)
            assert connected.ok, connected
            assert connected.result["server_name"] == "shop"
            assert connected.end_ns > connected.start_ns > 0
            listed = program.send_command({"cmd": "list_tools"}, LIMIT_S)
            assert listed.result == {"tools": 2, "names": ["echo", "fail"], "more": False}
            assert listed.start_ns >= connected.end_ns
            called = program.send_command({"cmd": "call_tool", "name": "echo", "arguments": {"text": "hi"}}, LIMIT_S)
            assert called.result == {"is_error": False, "text": "hi"}
            failed = program.send_command({"cmd": "call_tool", "name": "fail", "arguments": {}}, LIMIT_S)
            assert failed.ok and failed.result["is_error"] and "on purpose" in failed.result["text"]
            assert program.send_command({"cmd": "disconnect"}, LIMIT_S).ok


@pytest.mark.network
@pytest.mark.parametrize("version", ["1.12.1", "2.3.0"])
def test_python_client_over_stdio(version: str) -> None:
    with client(version) as program:
        for _ in range(2):
            assert program.send_command({"cmd": "connect", "command": echo_server.over_stdio()}, LIMIT_S).ok
            called = program.send_command({"cmd": "call_tool", "name": "echo", "arguments": {"text": "hi"}}, LIMIT_S)
            assert called.result["text"] == "hi"
            assert program.send_command({"cmd": "disconnect"}, LIMIT_S).ok


@pytest.mark.network
@pytest.mark.parametrize("version", ["1.9.4", "1.30.0", "2.3.0"])
def test_python_client_goes_on_after_failures(version: str, server_url: str) -> None:
    with client(version) as program:
        nobody = {"cmd": "connect", "url": "http://127.0.0.1:1/mcp", "timeout_s": 10}
        refused = program.send_command(nobody, LIMIT_S)
        assert refused.error_kind == "connection" and refused.error_message
        assert program.send_command({"cmd": "list_tools"}, LIMIT_S).error_kind == "protocol"
        assert program.send_command({"cmd": "dance"}, LIMIT_S).error_kind == "protocol"
        assert program.send_command({"cmd": "connect", "url": server_url}, LIMIT_S).ok


@pytest.mark.network
def test_python_client_tells_a_silent_server(server_url: str) -> None:
    """A server that accepts connections but never answers: the time limit applies, and the program stays usable."""
    with socket.socket() as silent, client("1.30.0") as program:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        answer = program.send_command({"cmd": "connect", "url": url, "timeout_s": 0.3}, LIMIT_S)
        assert (answer.ok, answer.error_kind) == (False, "timeout")
        assert program.send_command({"cmd": "connect", "url": server_url}, LIMIT_S).ok


@pytest.mark.network
def test_python_client_says_what_a_release_cannot_do(server_url: str) -> None:
    with client("1.8.0") as program:
        provider = program.send_command({"cmd": "provider", "url": server_url, "auth": {"kind": "oauth"}}, LIMIT_S)
        assert provider.error_kind == "unsupported"
        assert (
            program.send_command({"cmd": "connect", "url": server_url, "mode": "auto"}, LIMIT_S).error_kind
            == "unsupported"
        )
    with pytest.raises(Unsupported, match="streamable HTTP"):
        client("1.7.1")


@pytest.mark.network
@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2025-11-25"), (None, "2025-11-25")])
def test_python_client_modes(mode: str | None, revision: str, server_url: str) -> None:
    with client("2.3.0") as program:
        answer = program.send_command({"cmd": "connect", "url": server_url, "mode": mode}, LIMIT_S)
        assert answer.result["protocol_version"] == revision
        assert program.send_command({"cmd": "disconnect"}, LIMIT_S).ok
        assert not program.send_command({"cmd": "connect", "url": server_url, "mode": "1999-01-01"}, LIMIT_S).ok


def test_programs_run_on_old_syntax() -> None:
    """Releases run on Python 3.10, so programs may only use features of that version."""
    folder = toml_file.find_folder()
    sources = [
        source for name in ("python", "fastmcp", "langchain", "shared") for source in (folder / name).glob("*.py")
    ]
    assert len(sources) >= 12
    for source in sources:
        compile_for_310 = "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 10))"
        subprocess.run([sys.executable, "-c", compile_for_310, source], check=True, timeout=LIMIT_S)
