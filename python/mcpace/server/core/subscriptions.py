"""Events about changes, which go to the clients that subscribed to them.

A server notifies its own clients. If several processes or machines serve the same clients, a bus carries the events
between them: each process notifies its own clients of the events that arrive over the bus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class ToolsListChanged:
    """The list of tools changed."""


@dataclass(frozen=True)
class PromptsListChanged:
    """The list of prompts changed."""


@dataclass(frozen=True)
class ResourcesListChanged:
    """The list of resources changed."""


@dataclass(frozen=True)
class ResourceUpdated:
    """A resource changed. A client receives it for the resources that it subscribed to, and for those below them."""

    uri: str


ServerEvent = ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated

EVENTS: dict[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class SubscriptionBus(Protocol):
    """Carries events between processes. Listeners are called on the server's event loop, and don't raise."""

    async def publish(self, event: Any) -> None:
        """Sends an event to every process that listens."""
        ...

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Registers a listener. Returns the function that removes it."""
        ...


class InMemorySubscriptionBus:
    """A bus within one process: listeners are called in the order in which they came."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[Any], None]] = {}

    async def publish(self, event: Any) -> None:
        """Calls every listener."""
        for listener in list(self._listeners.values()):
            listener(event)

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Registers a listener."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe


def checked_bus(subscriptions: Any) -> Any:
    """The bus, if there is one. Raises ``TypeError`` for any other object.

    ``False`` means no bus; the runtime serves clients that listen for changes all the same.
    """
    if subscriptions is False:
        return None
    if subscriptions is not None and not (hasattr(subscriptions, "publish") and hasattr(subscriptions, "subscribe")):
        raise TypeError(f"subscriptions must be a SubscriptionBus, got {type(subscriptions).__name__}")
    return subscriptions


def uri_of(event: Any) -> str | None:
    """The resource that an event is about; ``None`` for one about a list. Events of the official SDK count too."""
    uri = getattr(event, "uri", None)
    return None if uri is None else str(uri)


def list_of(event: Any) -> str | None:
    """The list that an event is about."""
    for kind, event_type in EVENTS.items():
        if type(event).__name__ == getattr(event_type, "__name__", ""):
            return kind
    return None
