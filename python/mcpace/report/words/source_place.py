"""Names of places in source code."""

from __future__ import annotations

from mcpace.report.words.quantities import clean

LONGEST_PATH = 60


def path_words(path: str) -> str:
    """``tools/weather.py``. The last folders of a long path: ``…/tools/weather.py``."""
    path = clean(path, 1000)
    if len(path) <= LONGEST_PATH:
        return path
    kept = path[-LONGEST_PATH + 1 :]
    _, slash, rest = kept.partition("/")
    return f"…/{rest}" if slash else f"…{kept}"


def place_words(path: str, line: int) -> str:
    """``tools/weather.py:14``."""
    return f"{path_words(path)}:{line}"
