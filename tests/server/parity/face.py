"""One set of names from either SDK: `FACE=mcp` (the official one) or `FACE=mcpace`."""

from __future__ import annotations

import os

FACE = os.environ["FACE"]

if FACE == "mcp":
    from mcp.server.mcpserver import (
        AcceptedElicitation,
        AssistantMessage,
        Audio,
        Context,
        Elicit,
        ElicitationResult,
        Image,
        ListRoots,
        MCPServer,
        Message,
        Resolve,
        Sample,
        UserMessage,
    )
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
    from mcp.server.mcpserver.resources import TextResource
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        Annotations,
        CallToolResult,
        Completion,
        EmbeddedResource,
        Icon,
        InputRequiredResult,
        ResourceLink,
        TextContent,
        TextResourceContents,
        ToolAnnotations,
    )
else:
    from mcpace import (
        AcceptedElicitation,
        AssistantMessage,
        Audio,
        Context,
        Elicit,
        ElicitationResult,
        Image,
        ListRoots,
        MCPError,
        MCPServer,
        Message,
        Resolve,
        ResourceError,
        ResourceNotFoundError,
        Sample,
        TextResource,
        ToolError,
        UserMessage,
    )
    from mcpace.types import (
        Annotations,
        CallToolResult,
        Completion,
        EmbeddedResource,
        Icon,
        InputRequiredResult,
        ResourceLink,
        TextContent,
        TextResourceContents,
        ToolAnnotations,
    )

__all__ = [
    "FACE",
    "AcceptedElicitation",
    "Annotations",
    "AssistantMessage",
    "Audio",
    "CallToolResult",
    "Completion",
    "Context",
    "Elicit",
    "ElicitationResult",
    "EmbeddedResource",
    "Icon",
    "Image",
    "InputRequiredResult",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "Message",
    "Resolve",
    "ResourceError",
    "ResourceLink",
    "ResourceNotFoundError",
    "Sample",
    "TextContent",
    "TextResource",
    "TextResourceContents",
    "ToolAnnotations",
    "ToolError",
    "UserMessage",
]
