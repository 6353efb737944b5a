"""The null server as a server program, with the options of adapters' server programs (adapters/README.md).

It is a separate program, so that it is started, limited, stopped and measured exactly like the compared servers.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from mcpace import _core
from mcpace.system.processors import usable_cores


def main() -> None:
    """Serves until stdin ends or SIGTERM comes."""
    options = argparse.ArgumentParser()
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--mode", choices=["json"])
    options.add_argument("--state")
    arguments = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # One thread for each processor that it may use: a limit by affinity is already in force.
    null = _core.Null(host=arguments.host, port=arguments.port, workers=len(usable_cores()))
    ready = {"ready": True, "sdk": "floor", "version": _core.VERSION, "pid": os.getpid(), "url": null.url, "workers": 1}
    print(json.dumps(ready), flush=True)
    try:
        while sys.stdin.buffer.read(4096):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        null.stop()


if __name__ == "__main__":
    main()
