"""Opening, locking, replacing and removing files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCKED_BYTE = 1 << 40
"""Byte that a lock of Windows is on: past the content, which other processes may still read."""


def open_file(path: Path | str, flags: int, mode: int = 0o600, *, follow_links: bool = False) -> int:
    """Opens a file as bytes, and returns its descriptor, which child processes do not inherit. Never waits for the
    other end of a pipe.

    A link at the end of ``path`` is refused unless ``follow_links``. On Windows the link is looked for before the file
    is opened; a link that takes the file's place in between is followed there. Raises :class:`OSError`.
    """
    if sys.platform == "win32":
        if not follow_links and os.path.islink(path):  # noqa: PTH114 - the path may be text
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        return os.open(path, flags | os.O_BINARY | os.O_NOINHERIT, mode)
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW), mode)


def try_lock(descriptor: int, *, is_shared: bool = False) -> bool:
    """Locks an open file against other processes until the descriptor is closed. Returns whether the lock was free.

    A shared lock leaves room for further shared locks; Windows has none. Raises :class:`OSError` where the file can't
    be locked.
    """
    try:
        if sys.platform == "win32":
            position = os.lseek(descriptor, 0, os.SEEK_CUR)
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, position, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def replace_content(path: Path, data: bytes) -> None:
    """Replaces a file's content whole or not at all; its permissions and its owner stay.

    A new file is its owner's alone. A link is replaced and not followed. Raises :class:`OSError`.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        status = None
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if status is not None and stat.S_ISREG(status.st_mode):
            if sys.platform != "win32":
                with contextlib.suppress(PermissionError):
                    os.chown(temporary, status.st_uid, status.st_gid)
            temporary.chmod(stat.S_IMODE(status.st_mode))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_open_file(descriptor: int, path: Path) -> None:
    """Closes the descriptor and removes its file, where ``path`` is there. The descriptor is closed in any case.

    A file that is open can't be removed on Windows, so it is closed first there. Raises :class:`OSError`.
    """
    try:
        if sys.platform != "win32":
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    if sys.platform == "win32":
        path.unlink(missing_ok=True)


def is_own(status: os.stat_result, forbidden: int) -> bool:
    """Whether a file or folder belongs to this user, and others have none of the permissions ``forbidden`` (``0o022``).

    On Windows the access list of the user's profile admits that user alone, and this is not checked.
    """
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & forbidden)
