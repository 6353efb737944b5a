"""A Run before anything is in it: what every experiment begins with."""

from __future__ import annotations

from typing import Any

from mcpace import __version__
from mcpace.lab.machine import machine, wall_clock
from mcpace.report.model.run import Kind, Run


def new_run(kind: Kind, options: dict[str, Any]) -> Run:
    """An empty run of this machine, now."""
    return Run(kind=kind, started=wall_clock(), machine=machine(), mcpace=__version__, options=options)
