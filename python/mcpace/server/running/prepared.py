"""A server that is ready to be run, of mcpace or of another SDK: the only form of a server that the runner uses.

The method ``__mcpace__`` of mcpace's servers returns a :class:`Prepared`. :mod:`mcpace.server.adopt` makes one of other
SDKs' servers (``adopt(object) -> Prepared``, which raises ``TypeError`` for unknown objects).
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
    """The runner's view of a server. Made once each time that the server is run."""

    core: _core.Server
    """The compiled part's registry with all tools, resources and prompts."""
    name: str
    tools: int = 0
    resources: int = 0
    """The number of resources and templates."""
    prompts: int = 0
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """The lifespan, entered on the event loop before the first request and left after the last answer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``_core.HttpOptions`` that the server's construction decides, such as ``token_verifier``. The command
    line overrides them."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The object's own :class:`mcpace.server.running.settings.Settings` by name, without defaults."""
    loopback_only: str | None = None
    """The reason why the server may only listen on loopback; ``None`` if it may listen anywhere."""
    notes: tuple[str, ...] = ()
    """Lines for the start message: which parts were adopted, and which were not."""


@runtime_checkable
class Preparable(Protocol):
    """A server object of mcpace."""

    def __mcpace__(self) -> Prepared:
        """The server, ready to be served."""
        ...


def prepare(server: object) -> Prepared:
    """Prepares a server object to be run.

    Raises ``TypeError`` for an object that is no known server.
    """
    if isinstance(server, Preparable):
        return server.__mcpace__()
    from mcpace.server.adopt import adopt

    prepared: Prepared = adopt(server)
    return prepared


def is_server(candidate: object) -> bool:
    """Whether :func:`prepare` accepts an object. Cheap: nothing is prepared, and no SDK is imported."""
    # The class is inspected, not the object: a proxy may answer for another object, or raise outside of a request.
    if issubclass(type(candidate), type):
        return False
    if hasattr(type(candidate), "__mcpace__"):
        return True
    from mcpace.server.adopt import adoptable

    return bool(adoptable(candidate))
