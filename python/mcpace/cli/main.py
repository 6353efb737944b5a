"""Entry point of the console script.

Design constraint: Slow imports happen only while Ctrl-C ends the process without a traceback.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Importing the command line's own parser would take ten times as long.
        from mcpace import __version__

        print(f"mcpace {__version__}")
        return
    if sys.argv[1:2] in (["flight"], ["flight-bare"]):
        # A host waits for this command at its start: see mcpace wrap.
        from mcpace.cli import flight_recorder

        sys.exit(flight_recorder.run(sys.argv[2:]))
    if sys.argv[1:2] == ["load-worker"]:
        # mcpace load --workers starts this command, also where nothing but the wheel is installed.
        from mcpace.lab.load.workers.worker_listener import run_worker_command

        sys.exit(run_worker_command(sys.argv[2:]))
    # Importing takes a quarter of a second. During the import, Ctrl-C ends the process without a traceback.
    has_default_handler = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if has_default_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mcpace.cli import commands

    if has_default_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    commands.main()
