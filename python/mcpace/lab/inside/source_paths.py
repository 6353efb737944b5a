"""Paths of a server's own files as a Run has them: relative to the working directory, or to the user's home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def source_path(path: str) -> str:
    """``weather.py`` for a file below the working directory, ``~/weather.py`` for one below the user's home."""
    for folder, prefix in ((_folder(Path.cwd), ""), (_folder(Path.home), "~/")):
        if folder and path.startswith(folder):
            return prefix + path[len(folder) :]
    return path


def with_source_path(context: dict[str, Any]) -> dict[str, Any]:
    """The context of a finding, with a short path of the file that it names."""
    file = context.get("file")
    return {**context, "file": source_path(file)} if isinstance(file, str) else context


def _folder(find: Callable[[], Path]) -> str:
    """The path of a folder with its last slash; empty for the root folder, and where there is no such folder."""
    try:
        folder = str(find())
    except (OSError, RuntimeError):
        return ""
    return "" if folder == "/" else f"{folder}/"
