"""Lines of TypeScript from lines of the JavaScript that was made of it (ECMA-426, "Source map format").

Design constraint: A map lies beside the server's files, and is read only where the file names it in its last lines.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from mcpace.lab.inside.javascript_calls import MOST_BYTES
from mcpace.lab.inside.regular_files import read_bounded

MOST_MAPS = 200
MOST_MAP_BYTES = 32 << 20
REFERENCE = re.compile(r"^//[#@] ?sourceMappingURL=([^\s]+)\s*$", re.MULTILINE)
TAIL = 4096
DIGITS = {
    digit: value for value, digit in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


@dataclass(frozen=True)
class Segment:
    """A position of the generated file, and the file and line that it was made of."""

    column: int
    source: int
    line: int


@dataclass(frozen=True)
class SourceMap:
    sources: list[str]
    lines: list[list[Segment]]

    def original(self, line: int, column: int) -> tuple[str, int] | None:
        """The file and line of a position. Lines count from 1, columns from 0."""
        segments = self.lines[line - 1] if 0 < line <= len(self.lines) else []
        at = max(0, bisect_right(segments, column, key=lambda segment: segment.column) - 1)
        if not segments or segments[at].source >= len(self.sources):
            return None
        return self.sources[segments[at].source], segments[at].line + 1


class SourceMaps:
    """The maps of files, each of which is read once."""

    def __init__(self) -> None:
        self._maps: dict[str, SourceMap | None] = {}

    def original(self, file: str, line: int, column: int) -> tuple[str, int] | None:
        """The file and line that a position was made of; ``None`` where no map tells."""
        if file not in self._maps:
            self._maps[file] = _map_of(Path(file)) if len(self._maps) < MOST_MAPS else None
        found = self._maps[file]
        return found.original(line, column) if found is not None else None


def _map_of(file: Path) -> SourceMap | None:
    reference = REFERENCE.search(read_bounded(file, MOST_BYTES)[-TAIL:])
    # A map within the file is a data URL, which is left out: TAIL is less than any.
    if reference is None or ":" in reference[1]:
        return None
    path = file.parent / unquote(reference[1])
    try:
        return parse_source_map(read_bounded(path, MOST_MAP_BYTES), path.parent)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def parse_source_map(text: str, folder: Path) -> SourceMap:
    """Raises ValueError, TypeError, KeyError or AttributeError where it is none."""
    of = json.loads(text)
    root = str(of.get("sourceRoot") or "")
    sources = [
        os.path.normpath(folder / root / str(source)) if "://" not in str(source) else str(source)
        for source in of["sources"]
    ]
    lines = []
    source = original = 0
    for generated in of["mappings"].split(";"):
        segments, column = [], 0
        for group in filter(None, generated.split(",")):
            numbers = _decode_numbers(group)
            column += numbers[0]
            if len(numbers) >= 4:
                source, original = source + numbers[1], original + numbers[2]
                if column < 0 or source < 0 or original < 0:
                    raise ValueError("a position before the beginning")
                segments.append(Segment(column, source, original))
        lines.append(sorted(segments, key=lambda segment: segment.column))
    return SourceMap(sources, lines)


def _decode_numbers(group: str) -> list[int]:
    """The numbers of a segment: digits of base 64, the lowest first, with a bit for "more" and one for the sign."""
    numbers, value, shift = [], 0, 0
    for character in group:
        digit = DIGITS[character]
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
        elif shift > 60:
            raise ValueError("a number is too long")
    return numbers
