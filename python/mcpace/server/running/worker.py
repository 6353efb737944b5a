"""A worker process: ``python -m mcpace.server.running.worker SOCKET PIPE``, started by :mod:`.child` only.

Design constraint: light, and tied to its parent before the author's code runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any

from mcpace.server.running import lifeline


def main() -> None:
    """Serves by the parent's order until the parent asks it to end."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    tie = int(sys.argv[2])
    # Processes that the author's code starts do not inherit the descriptors.
    parent.set_inheritable(False)
    os.set_inheritable(tie, False)
    lifeline.tie(tie)
    order = json.loads(parent.makefile("r").readline())
    # Before it serves there is nothing to finish.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    sys.argv[:] = [order["target"], *order["arguments"]]
    from mcpace.server.running.runner import run_worker

    run_worker(order, lambda **facts: _report(parent, facts))


def _report(parent: socket.socket, facts: dict[str, Any]) -> None:
    # Without a parent this process ends anyway.
    with contextlib.suppress(OSError):
        parent.sendall(json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main()
