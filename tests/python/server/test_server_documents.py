"""Runs every example of docs/python.md and checks its claims."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import types
from pathlib import Path

import pytest

import mcpace

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"^## (.+?)\n|^### (.+?)\n|^```python\n(.*?)^```", PAGE, re.M | re.S)


def examples() -> list[tuple[str, str]]:
    found, heading = [], ""
    for chapter, section, code in EXAMPLES:
        heading = chapter or section or heading
        if code:
            found.append((heading, code))
    return found


@pytest.mark.parametrize(("heading", "code"), examples(), ids=[heading for heading, _ in examples()])
def test_example_runs(heading: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    exec(compile(code, f"docs/python.md: {heading}", "exec"), module.__dict__)
    assert isinstance(module.server, mcpace.MCPServer)
    for name, test in list(vars(module).items()):
        if name.startswith("test_"):
            assert inspect.iscoroutinefunction(test)
            asyncio.run(test())


def test_there_are_examples() -> None:
    assert len(examples()) > 8


def test_every_public_name_is_documented() -> None:
    for name in mcpace.__all__:
        value = getattr(mcpace, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert (value.__doc__ or "").strip(), name
        if inspect.isclass(value) and value.__module__.startswith("mcpace.server"):
            for member, function in vars(value).items():
                if inspect.isfunction(function) and not member.startswith("_"):
                    assert (function.__doc__ or "").strip() or any(
                        (getattr(base, member, None) and getattr(base, member).__doc__) for base in value.__mro__[1:]
                    ), f"{name}.{member}"


def test_names_are_the_ones_that_types_are_checked_with() -> None:
    source = (ROOT / "python" / "mcpace" / "__init__.py").read_text()
    block = source.split("if TYPE_CHECKING:")[1].split("_WHERE = ")[0]
    imported = set(re.findall(r"\b([A-Za-z_]+)\b(?=[,\n)])", re.sub(r"from \S+ import", "", block)))
    assert imported == set(mcpace.__all__) - {"__version__"}
