"""Atomic writing of files: a file is written under a temporary name and renamed once it is complete."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpace.system.files import open_file

READ_AND_WRITE = 0o666
PRIVATE = 0o600
"""Mode of recordings and exports: requests, replies and sometimes secrets are in them."""
MOST_NAMES = 100


@contextmanager
def replace_atomically(path: Path, most: int = READ_AND_WRITE) -> Iterator[Path]:
    """Yields a temporary file that replaces ``path`` at the end of the ``with`` block.

    After an exception, the temporary file is removed and ``path`` is unchanged. ``most``: permissions of the file
    before the user's umask. Raises :class:`OSError` where the folder can't be written.
    """
    path = path.resolve()  # replaces the target of a link, not the link
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(most & ~_current_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_private(path: Path) -> None:
    """Creates or empties the file ``path``. A new file has mode 0600.

    Raises :class:`OSError` where the file can't be written.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE))


def make_spare(path: Path) -> Path:
    """Creates a new private file, with a number in its name where the name is taken. Doesn't follow links.

    Raises :class:`OSError` where no file can be created.
    """
    stem, ending = path.name.partition(".")[0], path.name.partition(".")[2]
    for number in range(1, MOST_NAMES):
        place = path if number == 1 else path.with_name(f"{stem}-{number}.{ending}")
        try:
            os.close(open_file(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
        except FileExistsError:
            continue
        return place
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def is_other(path: Path) -> bool:
    """Whether ``path`` is a pipe or a device, which is written directly instead of being replaced."""
    return path.exists() and not path.is_file()


def _current_umask() -> int:
    # The umask can only be read by setting it.
    now = os.umask(0o077)
    os.umask(now)
    return now
