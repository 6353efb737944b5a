"""Folders of packages that instrument servers, in mcpace's cache.

Design constraint: The environment of the server never changes. A folder is named by the digest of its recipe, is finished
when it exists, and needs no network from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from mcpace.lab.environments.environment import hold_lock, make_folder, temporary_build
from mcpace.lab.environments.releases import Say
from mcpace.lab.paths import cache_folder


def ensure_folder(name: str, recipe: str, label: str, say: Say, install: Callable[[Path], None]) -> Path:
    """Returns the folder that ``install`` fills on first use. ``recipe`` is all that decides on its content.

    Raises :class:`EnvironmentProblem` where the installation fails.
    """
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    path = cache_folder() / "inside" / f"{name}-{digest}"
    if path.is_dir():
        return path
    make_folder(path.parent)
    with hold_lock(path.with_name(f"{path.name}.lock"), label, say):
        if not path.is_dir():
            say(f"installing {label}")
            with temporary_build(path, label) as folder:
                install(folder)
    return path
