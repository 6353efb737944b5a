"""Test support for servers: a real pytest run of the sample project of docs/testing.md, and misuse."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace import Context, MCPServer, _core
from mcpace.testing import connect, connect_sync, freeze_rate_limits, token

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.M | re.S))
LIMIT_S = 120


def pytest_run(folder: Path) -> subprocess.CompletedProcess[str]:
    """A pytest run as by a user: in another folder, without the settings of this project."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)


def test_the_sample_project_s_tests_pass(tmp_path: Path) -> None:
    assert set(FILES) == {"shop.py", "test_shop.py", "test_limits.py"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = pytest_run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^5 passed", done.stdout, re.M), done.stdout


def test_the_sample_project_s_tests_can_fail(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace('permissions=[requires("orders:write")], ', ""))
    done = pytest_run(tmp_path)
    assert done.returncode == 1
    assert "FAILED test_shop.py::test_stock" in done.stdout
    assert "FAILED test_shop.py::test_order_needs_a_scope" in done.stdout


def test_the_plugin_imports_nothing_but_pytest() -> None:
    heavy = {"mcpace._core", "mcpace.client", "mcpace.server", "pydantic", "asyncio"}
    program = (
        "import sys, pytest; before = set(sys.modules); import mcpace.testing.plugin; "
        f"print(sorted({heavy!r} & (sys.modules.keys() - before)))"
    )
    # Not by pytest itself, which would have loaded it.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    assert done.stdout.strip() == "[]"


def test_a_context_tells_on_whose_behalf_a_client_speaks() -> None:
    server = MCPServer("t")

    @server.tool()
    def who(ctx: Context) -> str:
        return str(ctx.client_id)

    with connect_sync(server, principal=token("ada", client_id="desk")) as client:
        assert client.call_tool("who").content[0].text == "desk"  # type: ignore[union-attr]
    with connect_sync(server) as client:
        assert client.call_tool("who").content[0].text == "None"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_revision_knows_the_principal(mode: str) -> None:
    server = MCPServer("t")

    @server.tool()
    def who(ctx: Context) -> str:
        return str(ctx.client_id)

    async def ask() -> str:
        async with connect(server, principal=token("ada", client_id="desk"), mode=mode) as client:
            result = await client.call_tool("who")
            return result.content[0].text  # type: ignore[union-attr]

    assert asyncio.run(ask()) == "desk"


def test_only_a_server_object_believes_who_calls() -> None:
    with pytest.raises(TypeError, match="principal= needs a server object of mcpace"):
        connect("http://127.0.0.1:1/mcp", principal=token("ada"))
    with pytest.raises(TypeError, match="a client connects to a URL"):
        connect(object())


def test_a_clock_is_frozen_before_the_first_use_or_not_at_all() -> None:
    server = MCPServer("t", rate_limits="1/s")
    server.tool(name="x")(lambda: "x")
    server.call_tool_sync("x")
    with pytest.raises(RuntimeError, match="freeze their clock, before its first call"):
        freeze_rate_limits(server)


def test_tokens_are_made_up_of_what_is_said() -> None:
    made = token("ada", scopes=["a", "b"], client_id="c", role="admin")
    assert (made.subject, made.scopes, made.client_id) == ("ada", ["a", "b"], "c")
    assert made.claims == {"sub": "ada", "role": "admin"}
    assert isinstance(_core.Limiter.memory(frozen=True), _core.Limiter)
