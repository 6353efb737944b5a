"""Serves examples as mcpace does: adopted, with nothing of the SDK's transport.

Usage: adopted.py EXAMPLE.py:auto|json|sse:sessions|stateless …; prints one line, a JSON list of ports, and another with
what is said of each at its start. Ends with its stdin.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import ExitStack

from original import load

from mcpace import _core
from mcpace.server.adopt import adopt
from mcpace.server.running.lifespans import RunningLifespan


def main(subjects: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    ports, notes = [], []
    with ExitStack() as stack:
        for number, subject in enumerate(subjects):
            path, mode, sessions = subject.rsplit(":", 2)
            prepared = adopt(load(path, number))
            stack.enter_context(RunningLifespan(prepared))
            options = _core.HttpOptions(
                port=0, response=mode, stateless=sessions == "stateless", **dict(prepared.options)
            )
            running = prepared.core.serve_http(options)
            stack.callback(running.stop)
            ports.append(running.port)
            notes.append(prepared.notes)
        print(json.dumps(ports), flush=True)
        print(json.dumps(notes), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
