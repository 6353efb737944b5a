"""Where things are on this machine: the cache, and the uv command."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from mcpace.lab.errors import EnvironmentProblem

CACHE_VARIABLE = "MCPACE_CACHE"


def cache_folder() -> Path:
    """MCPACE_CACHE, else XDG_CACHE_HOME/mcpace, else ~/.cache/mcpace. Not made here."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mcpace"


def find_uv() -> Path:
    """The uv beside this interpreter, else the one on PATH."""
    own = Path(sys.executable).parent / "uv"
    if os.access(own, os.X_OK):
        return own
    if found := shutil.which("uv"):
        return Path(found)
    raise EnvironmentProblem(f"the command uv is missing: install it with `{sys.executable} -m pip install uv`")
