"""A port for a program that can't be told to take any free one."""

from __future__ import annotations

import socket


def free() -> int:
    """One that nobody has at the moment: another process may take it before the program does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
