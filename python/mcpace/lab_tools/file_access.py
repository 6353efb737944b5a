"""The files that a tool may read: regular files below one folder, and mcpace's own reports.

Design constraint: A tool works on a private copy, so that a file that changes between the check and its use, or that
grows without end, does no harm.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode
from mcpace.report.words.quantities import clean
from mcpace.system.files import open_file

MOST_BYTES = 256 * 2**20
"""Maximum size of a file. Recordings are compressed."""
CHUNK_BYTES = 2**20


class FileAccess:
    """Decides which files are allowed, and copies them."""

    def __init__(self, folder: Path, reports: Path) -> None:
        """``folder`` is the folder below which files may be read; ``reports`` has the reports of earlier calls."""
        self._folder = folder.resolve()
        roots = [self._folder, reports.resolve()]
        # Desktop hosts start servers in the root folder, which is nobody's choice of a folder.
        self._roots = [root for root in roots if root != Path(root.anchor)]

    def locate(self, text: str) -> Path:
        """The path of the file ``text``, which is relative to the folder or absolute, without links.

        Raises :class:`UsageProblem` where the file is not allowed or not a regular file.
        """
        shown = repr(clean(text, 200))
        if not is_unicode(text) or "\0" in text:
            raise UsageProblem(f"{shown} is no path of a file")
        try:
            path = (self._folder / text).resolve(strict=True)
            is_file = path.is_file()
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
            raise UsageProblem(f"cannot read {shown}: {reason}") from error
        if not any(path.is_relative_to(root) for root in self._roots):
            allowed = " or ".join(str(root) for root in self._roots)
            raise UsageProblem(
                f"{shown} is outside of the folders that may be read: name a file below {allowed}, or start "
                "`mcpace mcp` with --folder FOLDER"
            )
        if not is_file:
            raise UsageProblem(f"{shown} is not a regular file")
        return path

    def copy(self, text: str, into: Path) -> Path:
        """Copies the file ``text`` into the new folder ``into`` with mode 0600, and returns the copy.

        Raises :class:`UsageProblem` as :meth:`locate`, and where the file has more than :data:`MOST_BYTES`.
        """
        path = self.locate(text)
        try:
            into.mkdir(mode=0o700)
            descriptor = open_file(path, os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as source:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                    raise UsageProblem(
                        f"{clean(text, 200)!r} has {status.st_size:,} bytes, and at most {MOST_BYTES:,} are read"
                    )
                place = into / path.name
                with os.fdopen(open_file(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as copy:
                    left = status.st_size
                    while left and (chunk := source.read(min(left, CHUNK_BYTES))):
                        copy.write(chunk)
                        left -= len(chunk)
        except OSError as error:
            raise UsageProblem(f"cannot read {clean(text, 200)!r}: {error.strerror}") from error
        return place
