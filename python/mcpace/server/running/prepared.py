"""A server that is ready to be run, whoever wrote it: the one thing that the runner knows of a server object.

An object of ours has a method ``__mcpace__`` that returns a :class:`Prepared`; an object of another SDK is turned
into one by :mod:`mcpace.server.adopt` (``adopt(object) -> Prepared``, raising ``TypeError`` for what it doesn't
know).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mcpace import _core


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the runner needs. Made once for each time that the server is run."""

    core: _core.Server
    """All tools, resources and prompts, registered."""
    name: str
    tools: int = 0
    resources: int = 0
    """Templates count too."""
    prompts: int = 0
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """Entered on the event loop before the first request is taken, left after the last one was answered."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``_core.HttpOptions`` that the server's own construction decides, such as ``token_verifier``. What
    the command line says wins."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The object's own :class:`mcpace.server.running.settings.Settings`, by name, where they aren't the usual ones."""
    loopback_only: str | None = None
    """Why it may listen on this machine's loopback only; ``None``: it may listen anywhere."""
    notes: tuple[str, ...] = ()
    """Said at start, one line each: what was adopted, and what was not."""


@runtime_checkable
class Preparable(Protocol):
    """A server object of ours."""

    def __mcpace__(self) -> Prepared:
        """All that is registered, ready to be served."""
        ...


def prepare(server: object) -> Prepared:
    """The server object, ready to be run.

    Raises ``TypeError`` where it is none that can be.
    """
    if isinstance(server, Preparable):
        return server.__mcpace__()
    from mcpace.server.adopt import adopt

    prepared: Prepared = adopt(server)
    return prepared


def is_server(candidate: object) -> bool:
    """Whether :func:`prepare` would take it. Cheap: nothing is prepared, and nothing imported that the object didn't
    bring."""
    # The class is looked at, not the object: a proxy may answer for something else, or raise outside of a request.
    if issubclass(type(candidate), type):
        return False
    if hasattr(type(candidate), "__mcpace__"):
        return True
    from mcpace.server.adopt import adoptable

    return bool(adoptable(candidate))
