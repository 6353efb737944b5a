"""The side of a server that answers in its own process: for tests, and for programs that are no client.

Design constraint: the names and behaviours are the official SDK's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from mcpace.server.context import Context, ReadResourceContents
from mcpace.server.errors import ToolError, is_protocol_error
from mcpace.server.parts import LifespanT, Parts
from mcpace.types import CallToolResult, GetPromptResult, InputRequiredResult, PromptMessage
from mcpace.types import Prompt as ListedPrompt
from mcpace.types import Resource as ListedResource
from mcpace.types import ResourceTemplate as ListedTemplate
from mcpace.types import Tool as ListedTool


class Answering(Parts[LifespanT]):
    """See the module."""

    async def list_tools(self) -> list[ListedTool]:
        """All tools, as clients are told."""
        return [ListedTool.model_validate(tool.listed()) for tool in self.registry.tools.values()]

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process, as a client would.

        Raises ``ToolError`` where there is none, the arguments don't fit, or it fails; ``UnexpectedToolError`` where
        it crashes.
        """
        tool = self.registry.tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        result = await tool.run(arguments or {}, context or Context(server=self._server), convert_result=True)
        return cast("CallToolResult | InputRequiredResult", result)

    async def list_resources(self) -> list[ListedResource]:
        """All resources, as clients are told."""
        from mcpace.server.resources import listed_resource

        return [ListedResource.model_validate(listed_resource(one)) for one in self.registry.resources.values()]

    async def list_resource_templates(self) -> list[ListedTemplate]:
        """All families of resources, as clients are told."""
        return [ListedTemplate.model_validate(one.listed()) for one in self.registry.templates.values()]

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Reads a resource in this process.

        Raises ``ResourceNotFoundError`` where there is none, ``ResourceError`` where reading fails,
        ``UnexpectedResourceError`` where it crashes.
        """
        from mcpace.server import serving

        read = await serving.read(self._server, str(uri), context or Context(server=self._server))
        return cast("Iterable[ReadResourceContents] | InputRequiredResult", read)

    async def list_prompts(self) -> list[ListedPrompt]:
        """All prompts, as clients are told."""
        return [ListedPrompt.model_validate(prompt.listed()) for prompt in self.registry.prompts.values()]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Fills a prompt in, in this process. Raises ``ValueError`` where there is none, or it fails."""
        prompt = self.registry.prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        try:
            rendered = await prompt.render(arguments, context or Context(server=self._server))
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ValueError(str(error)) from error
        if isinstance(rendered, InputRequiredResult):
            return rendered
        messages = [PromptMessage(role=one.role, content=one.content) for one in rendered]
        return GetPromptResult(description=prompt.description, messages=messages)
