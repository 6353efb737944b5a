"""The client program for FastMCP (adapters/README.md). `connection.py` drives it; the rest is shared."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import contract

# Set before the import, which reads the variables. The first releases keep tokens in files, which must not be the
# user's.
HOME = tempfile.mkdtemp(prefix="mcpace-fastmcp-")
os.environ.update(FASTMCP_HOME=HOME, FASTMCP_LOG_LEVEL="CRITICAL", FASTMCP_CHECK_FOR_UPDATES="off")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def load() -> Any:
    import connection

    return connection.Driver(Path(HOME))


contract.run("fastmcp", load, "this release of fastmcp is before 2.6, whose client this program is for")
