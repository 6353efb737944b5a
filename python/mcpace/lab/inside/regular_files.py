"""Reads regular files that a server wrote or names. Opening another kind of file might block or have an effect."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from mcpace.system.files import open_file


def open_regular(path: Path, *, follow_links: bool = False) -> BinaryIO:
    """Opens a regular file for reading. Raises :class:`OSError` for any other kind, and for a link unless followed."""
    descriptor = open_file(path, os.O_RDONLY, follow_links=follow_links)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, limit: int) -> str:
    """The text of a regular file, also behind a link, that has ``limit`` bytes at most; empty for any other."""
    try:
        if not path.is_file() or path.stat().st_size > limit:
            return ""
        with open_regular(path, follow_links=True) as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
