"""Which values of a URI template's variables are safe to be used as paths.

On by default for every template: a value that would climb out of a folder, or is an absolute path, or holds a null
byte, means that there is no such resource.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ResourceSecurity:
    """What is refused in the values of a template's variables."""

    reject_path_traversal: bool = True
    """``..`` that would climb out of where the path starts."""
    reject_absolute_paths: bool = True
    """``/etc``, ``C:\\x``, ``\\\\host``."""
    reject_null_bytes: bool = True
    exempt_params: Set[str] = field(default_factory=frozenset)
    """Variables that may hold anything."""

    def validate(self, params: Mapping[str, str | list[str]]) -> str | None:
        """The first variable whose value is refused; ``None`` where all are fine."""
        for name, value in params.items():
            if name in self.exempt_params:
                continue
            for one in value if isinstance(value, list) else [value]:
                if (
                    (self.reject_null_bytes and "\0" in one)
                    or (self.reject_path_traversal and contains_path_traversal(one))
                    or (self.reject_absolute_paths and is_absolute_path(one))
                ):
                    return name
        return None


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()


class PathEscapeError(ValueError):
    """A path leads out of its folder."""


def contains_path_traversal(value: str) -> bool:
    """Whether ``..`` in a relative path climbs above its start, whichever slash separates."""
    depth = 0
    for part in value.replace("\\", "/").split("/"):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return False


def is_absolute_path(value: str) -> bool:
    """Whether a path is absolute on any system: joined to a folder, it would replace it."""
    if value[:1] in ("/", "\\"):
        return True
    return len(value) >= 2 and value[1] == ":" and value[0] in string.ascii_letters


def safe_join(base: str | Path, *parts: str) -> Path:
    """A path within ``base``, links followed. Raises :class:`PathEscapeError` for one that is not."""
    folder = Path(base).resolve()
    for part in parts:
        if "\0" in part or is_absolute_path(part):
            raise PathEscapeError(f"{part!r} can't be joined to {folder}: it is absolute, or has a null byte")
    target = folder.joinpath(*parts).resolve()
    if not target.is_relative_to(folder):
        raise PathEscapeError(f"{target} is outside of {folder}")
    return target
