"""Program that runs a server over stdio and records it: ``record_process.py FOLDER COMMAND...``.

A gateway starts it in the place of the server. Each process of the server has a recording of its own in the folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcpace import _core


def main() -> int:
    """Runs the command between this process's stdin and stdout; returns the command's exit code."""
    folder, *command = sys.argv[1:]
    file = Path(folder) / f"{os.getpid()}.jsonl.zst"
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        return _core.record_stdio(command, str(file))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
