"""Finds the recordings of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import files_below

ENDINGS = (".jsonl", ".jsonl.zst")


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """Files as given, and the recordings below each folder by name. Links inside folders are not followed.

    Raises :class:`UsageProblem` where a folder has none, or can't be read.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        below = sorted(files_below(path, ENDINGS))
        if not below:
            raise UsageProblem(
                f"{path} has no recordings ({' or '.join(ENDINGS)}): mcpace record and mcpace wrap make some"
            )
        found += below
    return list(dict.fromkeys(found))


def name_file(problem: Exception, path: Path) -> str:
    """The sentence of ``problem``, which names the file in any case."""
    sentence = str(problem)
    return sentence if str(path) in sentence else f"{path}: {sentence}"
