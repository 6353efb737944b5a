"""A worker process: ``python -m mcpace.server.running.worker SOCKET PIPE``, started by :mod:`.child` and by nobody
else.

Design constraint: light, and tied to its parent before anything of the author's runs.
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
    """Serves what the order says until it is asked to end."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    tie = int(sys.argv[2])
    # What the author's code starts has no part in this.
    parent.set_inheritable(False)
    os.set_inheritable(tie, False)
    lifeline.tie(tie)
    order = json.loads(parent.makefile("r").readline())
    # Before there is anything to finish, the end is simple.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    sys.argv[:] = [order["target"], *order["arguments"]]
    from mcpace.server.running.runner import run_worker

    run_worker(order, lambda **facts: _report(parent, facts))


def _report(parent: socket.socket, facts: dict[str, Any]) -> None:
    # Without a parent this process is about to end.
    with contextlib.suppress(OSError):
        parent.sendall(json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main()
