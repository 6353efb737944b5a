"""Free ports for programs that can't pick one themselves."""

from __future__ import annotations

import socket


def free() -> int:
    """Returns a port that is free at the moment. Another process may take it before the program does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
