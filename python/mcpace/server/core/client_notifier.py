"""Notifications that a server sends by itself: changes of its components, and messages of the author's.

A server notifies its own clients directly. With a bus, each event goes to the bus first, and every process notifies its
clients of the events that arrive over the bus.

Design constraint: nothing is sent before the server is used, and nothing of the compiled part is loaded for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from mcpace.server.core.core_binding import CoreBinding


class ClientNotifier:
    """Sends a server's own notifications."""

    def __init__(self, binding: CoreBinding, subscriptions: Any) -> None:
        self._binding = binding
        self.bus = _bus(subscriptions)

    def list_changed(self, kind: Literal["tools", "resources", "prompts"]) -> Awaitable[None]:
        """Notifies clients that a list changed."""
        from mcpace.server.core.subscriptions import EVENTS

        return self._publish(EVENTS[kind]())

    def resource_updated(self, uri: str) -> Awaitable[None]:
        """Notifies the clients that subscribed to a resource."""
        from mcpace.server.core.subscriptions import ResourceUpdated

        return self._publish(ResourceUpdated(uri))

    async def notify(self, session_id: str, method: str, params: Any) -> None:
        """Sends a notification to the client of one session."""
        core = self._binding.started
        if core is None:
            raise LookupError("there is no such session: the server isn't running")
        await core.notify(session_id, method, _params_json(params))

    async def broadcast(self, method: str, params: Any) -> None:
        """Sends a notification to the clients of all sessions."""
        core = self._binding.started
        if core is not None:
            await core.notify_all(method, _params_json(params))

    def subscribe(self) -> Callable[[], object]:
        """Passes the bus's events on to this process's clients. Returns the function that ends this."""
        if self.bus is None:
            return _no_subscription
        return cast("Callable[[], object]", self.bus.subscribe(self._send))

    def _publish(self, event: Any) -> Awaitable[None]:
        """Publishes an event. Without a bus it is sent at once, and the returned object need not be awaited."""
        if self.bus is None:
            self._send(event)
            return _Done()
        return cast("Awaitable[None]", self.bus.publish(event))

    def _send(self, event: Any) -> None:
        core = self._binding.started
        if core is None:
            return
        from mcpace.server.core.subscriptions import list_of, uri_of

        # A bus delivers the event to each process. Without a bus, a shared store does.
        everywhere = self.bus is None
        uri, kind = uri_of(event), list_of(event)
        if uri is not None:
            core.resource_updated(uri, everywhere=everywhere)
        elif kind is not None:
            core.list_changed(kind, everywhere=everywhere)


def _bus(subscriptions: Any) -> Any:
    if subscriptions is None:
        return None
    from mcpace.server.core.subscriptions import checked_bus

    return checked_bus(subscriptions)


def _no_subscription() -> None:
    pass


def _params_json(params: Any) -> str | None:
    """Parameters as a JSON object: a mapping, or a model."""
    if params is None:
        return None
    from pydantic_core import to_json

    from mcpace.types import wire

    text = to_json(wire(params) if hasattr(params, "model_dump") else params)
    if not text.startswith(b"{"):
        raise TypeError(f"params are an object, by names, not {type(params).__name__}")
    return text.decode()


class _Done:
    """An awaitable whose work is done."""

    def __await__(self) -> Any:
        return iter(())
