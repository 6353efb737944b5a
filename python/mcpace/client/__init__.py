"""The client: ``Client`` for asyncio, ``SyncClient`` for programs without an event loop; both use one core in Rust.

Design constraint: a call awaits one object and reads one result. Less common features (progress, metadata, requests of
the server) cost nothing unless they are used. Names are the official SDK's. Deliberately absent: validation of results
against output schemas, the SDK's sessions and transports as objects.
"""

from __future__ import annotations

from mcpace.client.client import Client
from mcpace.client.errors import ClientError, ListenNotSupportedError, MCPError, SubscriptionLost
from mcpace.client.options import OAuth, StdioServerParameters
from mcpace.client.subscription import Subscription
from mcpace.client.sync import SyncClient
from mcpace.server.core.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

__all__ = [
    "Client",
    "ClientError",
    "ListenNotSupportedError",
    "MCPError",
    "OAuth",
    "PromptsListChanged",
    "ResourceUpdated",
    "ResourcesListChanged",
    "ServerEvent",
    "StdioServerParameters",
    "Subscription",
    "SubscriptionLost",
    "SyncClient",
    "ToolsListChanged",
]
