"""The client program for the official Python SDK (adapters/README.md). `connection.py` drives it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import contract


def load() -> Any:
    import connection

    return connection.Driver()


contract.run("python", load, "this release of mcp has no streamable HTTP client")
