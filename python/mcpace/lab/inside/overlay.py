"""Packages of the instrumentation of a runtime, in a folder of mcpace's own.

Design constraint: The environment of the server never changes. Its own packages come before those of the folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.environments.environment import hold_lock, make_folder, temporary_build
from mcpace.lab.environments.releases import Say
from mcpace.lab.paths import cache_folder


@dataclass(frozen=True)
class Overlay:
    """The packages for one runtime."""

    name: str
    label: str
    recipe: tuple[Path, ...]
    """Files that name the packages. They are copied into the folder."""
    install: Callable[[Path, str], None]
    """Installs the packages in a folder, for the overlay with a label. Raises :class:`EnvironmentProblem`."""


def ensure_overlay(overlay: Overlay, say: Say) -> Path:
    """Returns the folder of the packages, and installs them on first use.

    Raises :class:`EnvironmentProblem` where that fails.
    """
    recipe = {file.name: file.read_text(encoding="utf-8") for file in overlay.recipe}
    digest = hashlib.sha256("".join(recipe.values()).encode()).hexdigest()[:8]
    path = cache_folder() / "inside" / f"{overlay.name}-{digest}"
    if path.is_dir():
        return path
    make_folder(path.parent)
    with hold_lock(path.with_name(f"{path.name}.lock"), overlay.label, say):
        if not path.is_dir():
            say(f"installing {overlay.label}")
            with temporary_build(path, overlay.label) as folder:
                for name, text in recipe.items():
                    (folder / name).write_text(text, encoding="utf-8")
                overlay.install(folder, overlay.label)
    return path
