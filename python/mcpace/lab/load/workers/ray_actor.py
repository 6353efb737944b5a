"""The worker as a Ray actor: the program of the other places, in the process of the actor.

Bytes travel through calls of Ray, so a cluster needs no further port and no token; Ray's own protection of its traffic
applies. The driver's end ends the actor, because Ray ends actors with their owner.

Design constraint: standard library and the worker only. Ray imports this module on the nodes.
"""

from __future__ import annotations

import os
import threading

from mcpace.lab.load.workers.worker import serve_driver

LONGEST_PART = 1 << 20


class WorkerActor:
    """A worker between two pipes. Ray calls ``read`` on a thread of its own."""

    def __init__(self) -> None:
        source, sink = os.pipe()
        self._input = os.fdopen(sink, "wb", buffering=0)
        self._output, out = os.pipe()
        threading.Thread(target=self._serve, args=(source, out), name="mcpace-load", daemon=True).start()

    def read(self) -> bytes:
        """Waits for output of the worker. Returns nothing after its end."""
        return os.read(self._output, LONGEST_PART)

    def write(self, part: bytes) -> None:
        """Adds to the worker's input. No bytes end it, and may be given again."""
        if not part:
            self._input.close()
        left = memoryview(part)
        while left:
            left = left[self._input.write(left) :]

    def _serve(self, source: int, out: int) -> None:
        with os.fdopen(source, "rb") as lines, os.fdopen(out, "wb") as output:
            serve_driver(lines, output)
