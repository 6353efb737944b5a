"""Paths on this machine: the cache, the working folder of child programs, and the uv command."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from mcpace.lab.errors import EnvironmentProblem
from mcpace.system.files import is_own

CACHE_VARIABLE = "MCPACE_CACHE"
SEARCH_ENDS = {"go.mod": "module neutral\n", "package.json": "{}\n", "uv.toml": ""}
"""Files of the neutral folder, with their texts."""


def cache_folder() -> Path:
    """MCPACE_CACHE, else XDG_CACHE_HOME/mcpace, else ~/.cache/mcpace. The folder may not exist yet."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    # The XDG specification has relative paths ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "mcpace"


def neutral_folder() -> Path:
    """The working folder of every child program that has no folder of its own: private to this user, no code in it.

    Interpreters import from the working folder, and package managers and toolchains read settings from it and from the
    folders above it. The user's current folder may be a stranger's checkout, and anybody may write to the temporary
    folder. The empty files stop the search that go, npm and uv make through the folders above.

    Raises :class:`EnvironmentProblem` where the folder can't be made, or belongs to another user.
    """
    folder = cache_folder() / "neutral"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if not is_own(status, 0o022):
            raise EnvironmentProblem(
                f"other users can write to the folder {folder}: set {CACHE_VARIABLE} to one that only you can write to"
            )
        for name, text in SEARCH_ENDS.items():
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(
            f"the folder {folder} can't be used: {error.strerror}; set {CACHE_VARIABLE} to one that can be written"
        ) from error
    return folder


def find_uv() -> Path:
    """The uv beside this interpreter, else the one on PATH."""
    own = Path(sys.executable).parent / "uv"
    if os.access(own, os.X_OK):
        return own
    if found := shutil.which("uv"):
        return Path(found)
    raise EnvironmentProblem(f"the command uv is missing: install it with `{sys.executable} -m pip install uv`")
