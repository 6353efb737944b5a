"""Results of a client's requests: the protocol's own, and what connecting finds out."""

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
    def told_server_info(self) -> Implementation | None:
        """Who the server says it is, wherever its revision has it."""
        if self.server_info is not None or self.meta is None:
            return self.server_info
        told = self.meta.get("io.modelcontextprotocol/serverInfo")
        return None if told is None else Implementation.model_validate(told)
