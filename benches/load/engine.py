"""Runs the plan on standard input with the load engine, prints its outcome. A process of its own can be pinned."""

import sys

from mcpace import _core

load = _core.Load(sys.stdin.read())
while not load.wait(60):
    pass
print(load.result())
