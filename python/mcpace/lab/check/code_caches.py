"""Caches of compiled code: variables with which an interpreter keeps compiled code from one start to the next.

Python keeps it unless ``PYTHONDONTWRITEBYTECODE`` is set, as many images and shells do. Node.js keeps it only where
``NODE_COMPILE_CACHE`` names a folder, since 22.1.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcpace.lab.check.start_watch import ProgramStart

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
NODE_SINCE = (22, 1)
LIMIT_S = 10.0
"""Time in which Node.js says its version."""


@dataclass(frozen=True)
class CodeCache:
    """Variables that make an interpreter keep compiled code."""

    advised: dict[str, str]
    """As a user sets them."""
    tried: dict[str, str]
    """As a trial sets them: the code is kept in a folder of the trial, and nothing of the user's changes."""


def code_cache(program: ProgramStart, environment: Mapping[str, str], folder: Path) -> CodeCache | None:
    """The variables for a server's own program; ``None`` where it keeps compiled code, or can't.

    ``environment``: of the server. ``folder``: for compiled code of the trial.
    """
    name = Path(program.path).name
    if name.startswith("python") and environment.get(NO_BYTECODE) and _can_keep_bytecode(program.words[0]):
        advised = {NO_BYTECODE: ""}
        return CodeCache(advised, {**advised, "PYTHONPYCACHEPREFIX": str(folder / "python")})
    if name == "node" and "NODE_COMPILE_CACHE" not in environment and _node_version(program.path) >= NODE_SINCE:
        own = Path.home() / ".cache" / "node-compile-cache"
        return CodeCache({"NODE_COMPILE_CACHE": str(own)}, {"NODE_COMPILE_CACHE": str(folder / "node")})
    return None


def _can_keep_bytecode(interpreter: str) -> bool:
    """Whether the environment of an interpreter is writable; bytecode is beside the modules."""
    return "/" in interpreter and os.access(Path(interpreter).parent.parent, os.W_OK)


@cache
def _node_version(path: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
        return tuple(int(number) for number in said.strip().removeprefix("v").split(".")[:2])
    except (OSError, ValueError, subprocess.SubprocessError):
        return (0,)
