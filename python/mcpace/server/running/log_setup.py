"""What Python's logging writes, and from which level on.

Design constraint: set up in one place, for there may be several who want a say. Who set logging up before keeps the
handlers. The level is the one that the server was made with, unless whoever runs it names another: that one wins.
"""

from __future__ import annotations

import logging


def begin(level: str) -> None:
    """To stderr, where nothing else was set up: stdout may be the client's."""
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")


def run_at(level: str | None) -> None:
    """The level that whoever runs a server named; ``None`` leaves the one that there is."""
    begin("INFO")
    if level is not None:
        logging.getLogger().setLevel(level.upper())
