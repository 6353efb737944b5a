"""Checks whether values of a URI template's variables are safe as paths.

The checks are on by default for every template. For a value that leaves the folder, is an absolute path, or contains a
null byte, there is no resource.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ResourceSecurity:
    """The checks of the values of a template's variables."""

    reject_path_traversal: bool = True
    """Refuses ``..`` that leaves the start of the path."""
    reject_absolute_paths: bool = True
    """``/etc``, ``C:\\x``, ``\\\\host``."""
    reject_null_bytes: bool = True
    exempt_params: Set[str] = field(default_factory=frozenset)
    """Variables that are not checked."""

    def validate(self, params: Mapping[str, str | list[str]]) -> str | None:
        """The first variable whose value is refused; ``None`` if all are accepted."""
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
    """Whether ``..`` in a relative path leaves its start, with either kind of slash."""
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
    """Whether a path is absolute on any system. Joining it to a folder would discard the folder."""
    if value[:1] in ("/", "\\"):
        return True
    return len(value) >= 2 and value[1] == ":" and value[0] in string.ascii_letters


def safe_join(base: str | Path, *parts: str) -> Path:
    """Joins a path to ``base`` and follows links. Raises :class:`PathEscapeError` for a result outside of ``base``."""
    folder = Path(base).resolve()
    for part in parts:
        if "\0" in part or is_absolute_path(part):
            raise PathEscapeError(f"{part!r} can't be joined to {folder}: it is absolute, or has a null byte")
    target = folder.joinpath(*parts).resolve()
    if not target.is_relative_to(folder):
        raise PathEscapeError(f"{target} is outside of {folder}")
    return target
