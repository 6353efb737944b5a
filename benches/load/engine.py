"""Runs the plan on standard input with the load engine and prints its outcome, as a process that can be pinned."""

import sys

from mcpace import _core

load = _core.Load(sys.stdin.read())
while not load.wait(60):
    pass
print(load.result())
