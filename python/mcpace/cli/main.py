"""The console script's entry point.

Design constraint: imports nothing that takes time before Ctrl-C does no harm.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # The command line's own parser takes ten times as long to load.
        from mcpace import __version__

        print(f"mcpace {__version__}")
        return
    # Importing takes a quarter of a second. Ctrl-C meanwhile ends the process as it ends any program: no traceback.
    allow_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if allow_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mcpace.cli import commands

    if allow_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    commands.main()
