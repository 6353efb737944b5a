"""``mcpace flight FOLDER COMMAND...``: a server behind the flight recorder, as `mcpace wrap` writes it.

Design constraint: a host waits for this program at its start, so it imports nothing but the compiled part. The server
is started even where nothing can be recorded.
"""

from __future__ import annotations

import os
import signal
import sys

from mcpace.lab.hosts import RING_BYTES

USAGE, NOT_STARTED = 2, 127


def run(words: list[str]) -> int:
    """Runs the server of the command line ``words`` to its end, and returns its exit code."""
    if len(words) < 2:
        return _report("mcpace flight needs a folder and a command: mcpace wrap CONFIG writes both", USAGE)
    folder, *command = words
    # The compiled part passes signals on to the server. Before it runs, a signal ends this process without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from mcpace import _core

        return _core.record_stdio(command, ring=(folder, RING_BYTES))
    except (ImportError, UnicodeEncodeError) as problem:
        _report(f"the server runs without the flight recorder: {problem}", 0)
    except Exception as problem:
        return _report(str(problem), NOT_STARTED)
    # Python ignores these signals, and a program inherits that.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        return _report(f"could not start {command[0]}: {problem.strerror}", NOT_STARTED)


def _report(sentence: str, code: int) -> int:
    if sys.stderr is not None:
        print(f"mcpace: {sentence}", file=sys.stderr, flush=True)
    return code
