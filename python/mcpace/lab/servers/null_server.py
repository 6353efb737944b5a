"""The floor as a server program, with the options and the end of adapters' server programs (adapters/README.md).

A program of its own, so that it is started, capped, held and looked at exactly as the servers beside it are.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from mcpace import _core


def main() -> None:
    """Serves until stdin ends or SIGTERM comes."""
    options = argparse.ArgumentParser()
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--mode", choices=["json"])
    options.add_argument("--state")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # As many threads as processors it may use: a cap by affinity is in force already.
    null = _core.Null(host=given.host, port=given.port, workers=len(os.sched_getaffinity(0)))
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
