"""The client program for langchain-mcp-adapters (adapters/README.md). `toolbox.py` drives it; the rest is shared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import contract


def load() -> Any:
    import toolbox

    return toolbox.Driver()


contract.run("langchain", load, "this release of langchain-mcp-adapters has no streamable HTTP client")
