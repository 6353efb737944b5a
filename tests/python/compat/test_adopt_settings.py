"""An adopted server is served with its own settings, and the command line overrides them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcpace.server.running.addresses import Address
from mcpace.server.running.effective_settings import with_own_settings
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings
from support.adoption import LEGACY, SDKS, SOURCES, Sdk, program
from support.dialogue import Peer

# Server objects of mcp 2.x have no settings, because they are arguments of its run method.
WITH_SETTINGS = [sdk for sdk in SDKS if sdk.name != "mcp-2"]


@contextmanager
def served(sdk: Sdk, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serves the example with its own settings and returns its first line of output."""
    example = SOURCES / "servers" / sdk.examples / "settled.py"
    with program(sdk, "serve", [str(example), "http", *words], errors=subprocess.PIPE) as running:
        assert running.stderr is not None
        yield next(line for line in running.stderr if line.startswith("mcpace ")), running


def tools(line: str, path: str) -> list[str]:
    port = re.search(r"http://127\.0\.0\.1:(\d+)" + path, line)
    assert port, line
    peer = Peer(int(port[1]), LEGACY, path=path)
    peer.open()
    return [tool["name"] for tool in peer.ask({"method": "tools/list"})["answer"]["result"]["tools"]]


@pytest.mark.network
@pytest.mark.parametrize("sdk", WITH_SETTINGS, ids=lambda sdk: sdk.name)
def test_settings_of_the_object_count(sdk: Sdk) -> None:
    with served(sdk) as (line, _):
        assert line.endswith("/api (no sessions, JSON only)\n")
        assert tools(line, "/api") == ["add"]


@pytest.mark.network
@pytest.mark.parametrize("sdk", WITH_SETTINGS, ids=lambda sdk: sdk.name)
def test_the_command_line_overrides_them(sdk: Sdk) -> None:
    words = ['path="/other"', "stateless=false", "json_response=false", "port=0"]
    with served(sdk, *words) as (line, _):
        assert line.endswith("/other (sessions)\n")
        assert tools(line, "/other") == ["add"]


def prepared(**settings: object) -> Prepared:
    return Prepared(core=None, name="x", settings=settings, notes=("a note",))  # type: ignore[arg-type]


def test_what_counts_is_said() -> None:
    server, settings = with_own_settings(prepared(port=9777, stateless=True), Settings(given=("port",), port=1))
    assert (settings.port, settings.stateless) == (1, True)
    assert server.notes == (
        "a note",
        "settings of the server object: stateless True; options of the command line override them",
    )
    server, settings = with_own_settings(prepared(port=9777), Settings(given=("port",), port=1))
    assert (server.notes, settings.port) == (("a note",), 1)


def test_an_address_that_a_parent_listens_on_already_stays() -> None:
    server, settings = with_own_settings(
        prepared(port=9777, path="/api"), Settings(workers=2), parent=Address("127.0.0.1", 8000)
    )
    assert (settings.port, settings.path) == (8000, "/api")
    assert server.notes[-1] == (
        "settings of the server object that several processes and --reload don't use: add --port 9777"
    )


def test_over_stdio_there_is_nothing_to_set() -> None:
    server, settings = with_own_settings(prepared(port=9777), Settings(transport="stdio"))
    assert (server.notes, settings) == (("a note",), Settings(transport="stdio"))
