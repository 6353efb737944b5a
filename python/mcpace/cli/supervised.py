"""Runs a command of the command line for ``mcpace mcp``: ``python -m mcpace.cli.supervised MEMORY COMMAND...``

MEMORY is the limit of the address space in bytes, or ``-`` for none. The end of stdin, which the supervisor holds open,
interrupts the command: a supervisor that dies leaves no experiment behind.
"""

from __future__ import annotations

import os
import sys
import threading

from mcpace.cli import commands
from mcpace.system.process_groups import ask_this_process_to_end, kill_this_process

GRACE_S = 5.0
"""Seconds from one signal to the next: the first saves results, the second shortens waits, the third kills."""


def main() -> None:
    """Runs the command."""
    memory = sys.argv.pop(1)
    if memory != "-" and sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    # An agent may write the settings file of the working folder, and the user agreed to the bounds in the arguments.
    commands.Commands.reads_settings = False
    commands.main()


def _end_with_supervisor() -> None:
    while os.read(0, 1):
        pass
    for _ in range(2):
        ask_this_process_to_end()
        threading.Event().wait(GRACE_S)
    kill_this_process()


if __name__ == "__main__":
    main()
