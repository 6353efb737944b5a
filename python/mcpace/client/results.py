"""Results that only clients see; the others are in :mod:`mcpace.types`.

Design constraint: models in the official SDK's names, tolerant of members that they don't know.
"""

from __future__ import annotations

from typing import Any, Literal

from mcpace.types import (
    Completion,
    Implementation,
    LoggingLevel,
    Model,
    Prompt,
    Resource,
    ResourceTemplate,
    Result,
    Tool,
    WithMeta,
)


class EmptyResult(Result):
    """Nothing but that it worked."""


class Listed(Result):
    """A page of a list."""

    next_cursor: str | None = None
    ttl_ms: int = 0
    cache_scope: Literal["public", "private"] = "private"
    result_type: str = "complete"


class ListToolsResult(Listed):
    """A page of tools."""

    tools: list[Tool]


class ListResourcesResult(Listed):
    """A page of resources."""

    resources: list[Resource]


class ListResourceTemplatesResult(Listed):
    """A page of templates of resources."""

    resource_templates: list[ResourceTemplate]


class ListPromptsResult(Listed):
    """A page of prompts."""

    prompts: list[Prompt]


class CompleteResult(Result):
    """Proposals for an argument."""

    completion: Completion


class LoggingMessageNotificationParams(WithMeta):
    """A log message of the server."""

    level: LoggingLevel
    logger: str | None = None
    data: Any = None


class Notification(Model):
    """Something that the server told."""

    method: str
    params: dict[str, Any] | None = None


class ListChangedCapability(Model):
    """A list, perhaps with news of its changes."""

    list_changed: bool | None = None


class ResourcesCapability(ListChangedCapability):
    """Resources, perhaps with news of theirs."""

    subscribe: bool | None = None


class ServerCapabilities(Model):
    """What a server can do."""

    experimental: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    prompts: ListChangedCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListChangedCapability | None = None
    completions: dict[str, Any] | None = None
    tasks: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


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


class SubscriptionFilter(Model):
    """Which changes are wanted, or were agreed to be told."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
