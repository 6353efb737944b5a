"""A server of this process: its lifespan, for as long as its client is connected.

Constraint: it is entered and left as when it is served: by one task of the loop that its functions run on.
"""

from __future__ import annotations

from mcpace.client.options import Place
from mcpace.server.running.errors import AuthorProblem
from mcpace.server.running.lifespans import Entered


def enter(place: Place) -> Entered | None:
    """Waits until the lifespan is entered, where there is one. Raises what the author's code raised."""
    if place.prepared is None or place.prepared.lifespan is None:
        return None
    try:
        return Entered(place.prepared).__enter__()
    except AuthorProblem as problem:
        raise problem.cause from None


def leave(entered: Entered | None) -> None:
    """Waits until it is left. Raises what the author's code raised."""
    if entered is None:
        return
    try:
        entered.__exit__(None, None, None)
    except AuthorProblem as problem:
        raise problem.cause from None
