"""Runs every Python example of docs/client.md and checks its claims."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The names in a function's annotations are looked up in its module.
    module = types.ModuleType(f"client_example_{number}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(EXAMPLES[number], f"docs/client.md, example {number}", "exec"), module.__dict__)
