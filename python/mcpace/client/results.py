"""Results of a client's requests: those of the protocol, and the result of connecting."""

from __future__ import annotations

from mcpace.types import (
    CompleteResult,
    EmptyResult,
    Implementation,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingMessageNotificationParams,
    Notification,
    Result,
    ServerCapabilities,
    SubscriptionFilter,
)
from mcpace.types import PaginatedResult as Listed

__all__ = [
    "CompleteResult",
    "Connected",
    "EmptyResult",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListToolsResult",
    "Listed",
    "LoggingMessageNotificationParams",
    "Notification",
    "ServerCapabilities",
    "SubscriptionFilter",
]


class Connected(Result):
    """The result of ``initialize`` or ``server/discover``."""

    capabilities: ServerCapabilities
    server_info: Implementation | None = None
    instructions: str | None = None

    @property
    def declared_server_info(self) -> Implementation | None:
        """The server's own name and version, from the member that its revision uses."""
        if self.server_info is not None or self.meta is None:
            return self.server_info
        told = self.meta.get("io.modelcontextprotocol/serverInfo")
        return None if told is None else Implementation.model_validate(told)
