"""Processors and memory of this machine."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable


def usable_cores() -> tuple[int, ...]:
    """Processors that this process may use, in order. Only Linux limits a process to some of them."""
    if sys.platform == "linux":
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def bind_thread(cores: Iterable[int]) -> None:
    """Lets this thread, and what it starts, run on these processors only. Raises :class:`OSError` on other systems than
    Linux.
    """
    if sys.platform != "linux":
        raise OSError(f"programs can be bound to processors on Linux only, and this is {sys.platform}")
    os.sched_setaffinity(0, set(cores))


def memory_bytes() -> int:
    """Size of the memory in bytes; 0 where the system doesn't tell."""
    if sys.platform == "win32":

        class MemoryStatus(ctypes.Structure):
            """``MEMORYSTATUSEX``."""

            _fields_ = [
                ("length", ctypes.c_uint32),
                ("load", ctypes.c_uint32),
                *((name, ctypes.c_uint64) for name in ("total", "free", "c", "d", "e", "f", "g")),
            ]

        status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
        return int(status.total) if ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)) else 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def page_bytes() -> int:
    """Bytes of a page of memory."""
    if sys.platform == "win32":
        return 4096
    return os.sysconf("SC_PAGE_SIZE")


def ticks_per_s() -> int:
    """Ticks of the kernel in a second, in which /proc counts processor time."""
    if sys.platform == "win32":
        return 100
    return os.sysconf("SC_CLK_TCK")
