"""Clients of other SDKs start an adopted server over stdio, as a host application does, and use all its components."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from support import adoption, interop
from support.adoption import LEGACY, MODERN, SOURCES

CLIENTS = [sdk for sdk in interop.SDKS if sdk.name not in ("go", "rmcp")]
TOOLS = ["echo", "test_tool_with_progress"]

every_server = pytest.mark.parametrize("server", adoption.SDKS, ids=lambda sdk: sdk.name)


def command(server: adoption.Sdk, example_name: str = "everything") -> list[str]:
    """Starts an example of the server's SDK, adopted."""
    example = SOURCES / "servers" / server.examples / f"{example_name}.py"
    return [str(adoption.interpreter(server)), "-W", "ignore", str(SOURCES / "serve.py"), str(example), "stdio"]


@pytest.mark.network
@every_server
@pytest.mark.parametrize(
    ("client", "era"), [pytest.param(sdk, era, id=f"{sdk.name}-{era}") for sdk in CLIENTS for era in sdk.eras]
)
def test_client_gets_all_that_the_server_has(client: interop.Sdk, era: str, server: adoption.Sdk) -> None:
    told = interop.client_output(client.client(), era, ["stdio", *command(server)])
    assert told.pop("tools") == TOOLS
    # A client of both eras falls back where the server has only the old one.
    assert told == interop.expected_output(MODERN if era == "modern" and MODERN in server.revisions else LEGACY)


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


@pytest.mark.network
def test_what_belongs_to_no_request_reaches_a_client_without_a_session() -> None:
    [server] = [sdk for sdk in adoption.SDKS if sdk.name == "mcp-2"]
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "confirm", "arguments": {"payment": "p-1"}, "_meta": meta}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    done = subprocess.run(
        command(server, "completing"),
        input=line + "\n",
        capture_output=True,
        text=True,
        timeout=interop.CLIENT_LIMIT_S,
        check=True,
    )
    told, answer = map(json.loads, done.stdout.splitlines())
    assert (told["method"], told["params"]["elicitationId"]) == ("notifications/elicitation/complete", "p-1")
    assert answer["result"]["content"][0]["text"] == "confirmed"
