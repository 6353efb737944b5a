"""Clients of other SDKs start an adopted server over stdio, as a host application does, and get all that it has."""

from __future__ import annotations

from typing import Any

import pytest

import adoption
import interop
from adoption import LEGACY, MODERN, SOURCES

CLIENTS = [sdk for sdk in interop.SDKS if sdk.name not in ("go", "rmcp")]
TOOLS = ["echo", "test_tool_with_progress"]

every_server = pytest.mark.parametrize("server", adoption.SDKS, ids=lambda sdk: sdk.name)


def command(server: adoption.Sdk) -> list[str]:
    """Starts the server's 'everything', adopted."""
    example = SOURCES / "servers" / server.examples / "everything.py"
    return [str(adoption.interpreter(server)), "-W", "ignore", str(SOURCES / "serve.py"), str(example), "stdio"]


@pytest.mark.network
@every_server
@pytest.mark.parametrize(
    ("client", "era"), [pytest.param(sdk, era, id=f"{sdk.name}-{era}") for sdk in CLIENTS for era in sdk.eras]
)
def test_client_gets_all_that_the_server_has(client: interop.Sdk, era: str, server: adoption.Sdk) -> None:
    told = interop.told_by(client.client(), era, ["stdio", *command(server)])
    assert told.pop("tools") == TOOLS
    # A client of both eras falls back where the server has only the old one.
    assert told == interop.expected_of(MODERN if era == "modern" and MODERN in server.revisions else LEGACY)


@pytest.mark.network
@every_server
def test_inspector_gets_what_the_server_has(server: adoption.Sdk) -> None:
    inspect = interop.inspector()
    target = command(server)

    def told(method: str, *words: str) -> Any:
        return inspect(*target, "--method", method, *words)

    assert sorted(tool["name"] for tool in told("tools/list")["tools"]) == TOOLS
    called = told("tools/call", "--tool-name", "echo", "--tool-arg", "text=hello ✓")
    assert called["content"] == [{"type": "text", "text": "hello ✓"}]
    read = told("resources/read", "--uri", "test://static-text")
    assert read["contents"][0]["text"] == "This is the content of the static text resource."
