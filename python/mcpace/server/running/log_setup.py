"""Sets up Python's logging for servers.

Design constraint: the only place that does so. Handlers that were set up before stay. A level that is given when the
server is run overrides the level that the server was made with.
"""

from __future__ import annotations

import logging


def begin(level: str) -> None:
    """Logs to stderr, unless logging is set up already. Stdout may belong to the protocol."""
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")


def run_at(level: str | None) -> None:
    """Sets the level that is given when a server is run; ``None`` leaves the level unchanged."""
    begin("INFO")
    if level is not None:
        logging.getLogger().setLevel(level.upper())
