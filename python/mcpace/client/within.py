"""The lifespan of a server of this process, which lasts as long as its client is connected.

Constraint: one task of the loop on which the server's functions run enters and leaves the lifespan, as for a server
that is served.
"""

from __future__ import annotations

from mcpace.client.options import ServerLocation
from mcpace.server.running.errors import AuthorProblem
from mcpace.server.running.lifespans import RunningLifespan


def enter_lifespan(place: ServerLocation) -> RunningLifespan | None:
    """Waits until the lifespan is entered, where there is one. Raises the exceptions of the author's code."""
    if place.prepared is None or place.prepared.lifespan is None:
        return None
    try:
        return RunningLifespan(place.prepared).__enter__()
    except AuthorProblem as problem:
        raise problem.cause from None


def leave(entered: RunningLifespan | None) -> None:
    """Waits until the lifespan is left. Raises the exceptions of the author's code."""
    if entered is None:
        return
    try:
        entered.__exit__(None, None, None)
    except AuthorProblem as problem:
        raise problem.cause from None
