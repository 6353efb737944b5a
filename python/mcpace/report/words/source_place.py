"""Names of places in source code."""

from __future__ import annotations

import re

from mcpace.report.words.quantities import clean

LONGEST_PATH = 60
PACKAGES = re.compile(r".*/(?:site-packages|dist-packages|node_modules)/")
"""Folder of installed packages, in the path of a file."""


def path_words(path: str) -> str:
    """``tools/weather.py``. The path within the installed packages, where the file is in one of them:
    ``httpx/_client.py``. The last folders of a long path: ``…/tools/weather.py``.
    """
    path = PACKAGES.sub("", clean(path, 1000))
    if len(path) <= LONGEST_PATH:
        return path
    kept = path[-LONGEST_PATH + 1 :]
    _, slash, rest = kept.partition("/")
    return f"…/{rest}" if slash else f"…{kept}"


def place_words(path: str, line: int) -> str:
    """``tools/weather.py:14``."""
    return f"{path_words(path)}:{line}"
