"""The README's first server, started with `mcpace serve`, as the Inspector's command line client sees it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import interop
from support.serve_process import serving

ROOT = Path(__file__).resolve().parents[3]

Inspect = Callable[..., Any]


@pytest.fixture(scope="module")
def inspect() -> Inspect:
    """Runs the pinned Inspector against an endpoint or a command."""
    return interop.inspector()


@pytest.fixture
def readme() -> tuple[str, str]:
    """The file name and the source of the README's server."""
    text = (ROOT / "README.md").read_text()
    source = re.search(r"```python\n(from mcpace import MCPServer\n.*?)```", text, re.DOTALL)
    name = re.search(r"^\$ mcpace serve (\S+\.py)", text, re.MULTILINE)
    assert source and name
    return name[1], source[1]


@pytest.mark.network
@pytest.mark.parametrize("words", [(), ("--workers", "2"), ("--json-response", "--stateless")])
def test_the_first_server_works_with_inspector(
    words: tuple[str, ...], inspect: Inspect, readme: tuple[str, str], tmp_path: Path
) -> None:
    name, source = readme
    with serving(tmp_path, name, "--port", "0", *words, source=source, name=name) as served:
        served.ready()
        check(inspect, f"http://127.0.0.1:{served.port}/mcp", "--transport", "http")


@pytest.mark.network
def test_the_first_server_works_with_inspector_over_stdio(
    inspect: Inspect, readme: tuple[str, str], tmp_path: Path
) -> None:
    name, source = readme
    (tmp_path / name).write_text(source)
    # As a script it runs itself.
    check(inspect, sys.executable, str(tmp_path / name))


def check(inspect: Inspect, *target: str) -> None:
    """Checks the components of the README's server."""
    listed = inspect(*target, "--method", "tools/list")["tools"]
    [add] = [tool for tool in listed if tool["name"] == "add"]
    assert set(add["inputSchema"]["properties"]) == {"a", "b"}
    words = ("--tool-name", "add", "--tool-arg", "a=2", "b=3")
    called = inspect(*target, "--method", "tools/call", *words)
    assert called["content"] == [{"type": "text", "text": "5"}]
    assert called["structuredContent"] == {"result": 5}
