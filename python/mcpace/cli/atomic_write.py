"""Files that users are promised whole or not at all: written beside their place, moved there once they are complete."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READ_AND_WRITE = 0o666
PRIVATE = 0o600
"""Mode of recordings and exports: requests, replies and sometimes secrets are in them."""
MOST_NAMES = 100


@contextmanager
def replacing(path: Path, most: int = READ_AND_WRITE) -> Iterator[Path]:
    """A file to write, which is moved to ``path`` in the end; where something goes wrong, it is gone and ``path`` as
    it was. ``most``: the permissions that it has at most, the user's umask aside.

    Raises :class:`OSError` where the folder takes no file.
    """
    path = path.resolve()  # through a link, to what it names
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(most & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_private(path: Path) -> None:
    """An empty file at ``path``, of mode 0600 where it is made here.

    Raises :class:`OSError` where it can't be written.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE))


def make_spare(path: Path) -> Path:
    """A new private file of this name, with a number added where there is something of this name already. Links aren't
    followed: others may have put one there.

    Raises :class:`OSError` where none can be made.
    """
    stem, ending = path.name.partition(".")[0], path.name.partition(".")[2]
    for number in range(1, MOST_NAMES):
        place = path if number == 1 else path.with_name(f"{stem}-{number}.{ending}")
        try:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE))
        except FileExistsError:
            continue
        return place
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def is_other(path: Path) -> bool:
    """Whether it is a pipe or a device: that is written to, and must not be replaced."""
    return path.exists() and not path.is_file()


def _umask() -> int:
    # The system tells it to whoever sets it, and to nobody else.
    now = os.umask(0o077)
    os.umask(now)
    return now
