"""Runs a command of the command line for ``mcpace mcp``: ``python -m mcpace.cli.supervised MEMORY COMMAND...``

MEMORY is the limit of the address space in bytes, or ``-`` for none. The end of stdin, which the supervisor holds open,
interrupts the command: a supervisor that dies leaves no experiment behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from mcpace.cli import commands

GRACE_S = 5.0
"""Seconds from one signal to the next: the first saves results, the second shortens waits, the third kills."""


def main() -> None:
    """Runs the command."""
    memory = sys.argv.pop(1)
    if memory != "-":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    commands.main()


def _end_with_supervisor() -> None:
    while os.read(0, 1):
        pass
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        os.kill(os.getpid(), number)
        threading.Event().wait(GRACE_S)


if __name__ == "__main__":
    main()
