"""A project's files, and its own packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from mcpace.migration.counterparts import PACKAGES

SUFFIXES = (".py", ".pyi")
SKIPPED = {"node_modules", "site-packages", "__pycache__"}
SOURCES = ("", "src", "lib")
"""Where a project's own packages usually are."""


def python_files(root: Path, on_error: Callable[[OSError], None]) -> Iterator[Path]:
    """The Python files of a folder, in order. Links and hidden folders are left alone, and virtual environments.

    ``on_error`` is called for each folder that cannot be listed.
    """
    if not root.is_dir():
        yield root.resolve()
        return
    for folder, folders, names in os.walk(root.resolve(), onerror=on_error):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and _is_own(here / name))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and (here / name).is_file() and not (here / name).is_symlink():
                yield here / name


def own_packages(root: Path) -> frozenset[str]:
    """Packages of the project that have an SDK's name: imports of these are the project's own."""
    folders = [root / source for source in SOURCES] if root.is_dir() else [root.resolve().parent]
    return frozenset(
        name
        for name in PACKAGES
        for folder in folders
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()
    )


def _is_own(folder: Path) -> bool:
    return folder.name not in SKIPPED and not folder.is_symlink() and not (folder / "pyvenv.cfg").exists()
