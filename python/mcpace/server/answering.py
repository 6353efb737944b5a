"""The side of a server that answers in its own process: for tests, and for programs that are no client.

``call_tool`` and its like are the official SDK's coroutines, and the server's own calls: trusted. Those that are made
for somebody name the ``principal``, and meet what that caller's client would.

Design constraint: a call that is trusted loads nothing of the compiled part.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from mcpace.server.auth.principal import TRUSTED
from mcpace.server.calls.context import Context, ReadResourceContents
from mcpace.server.errors import ToolError, is_protocol_error
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.server.settings import LifespanT, Parts
from mcpace.types import CallToolResult, GetPromptResult, InputRequiredResult, PromptMessage
from mcpace.types import Prompt as ListedPrompt
from mcpace.types import Resource as ListedResource
from mcpace.types import ResourceTemplate as ListedTemplate
from mcpace.types import Tool as ListedTool

if TYPE_CHECKING:
    from mcpace.server.auth.guards import Kind


class Answering(Parts[LifespanT]):
    """See the module."""

    async def list_tools(self, *, principal: Any = TRUSTED) -> list[ListedTool]:
        """All tools, as clients are told; with a ``principal``, those that this caller is shown."""
        shown = await self._shown("tool", self.registry.tools, principal)
        return [shared(ListedTool.model_validate(tool.listed())) for tool in shown]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
        *,
        principal: Any = TRUSTED,
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process.

        Without ``principal`` it is the server's own call, which no guard looks at: no permission, no limit, no bound.
        With one (an ``AccessToken``, or ``None`` for a caller without), it meets what that caller would.

        Raises ``ToolError`` where there is none, the arguments don't fit, or it fails; ``UnexpectedToolError`` where
        it crashes; with ``principal``, ``ToolError`` for all of these and ``MCPError`` where it is refused.
        """
        if principal is not TRUSTED:
            result = await self.acall_tool(name, arguments, principal=principal)
            if isinstance(result, CallToolResult) and result.is_error:
                raise ToolError("\n".join(getattr(block, "text", "") for block in result.content))
            return result
        tool = self.registry.tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        value = await tool.run(arguments or {}, context or Context(server=self._server), convert_result=True)
        return shared(cast("CallToolResult | InputRequiredResult", value))

    async def acall_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process as this caller's client would: guards, validation and result are the same.

        ``principal``: an ``AccessToken``; ``None`` for a caller without. A tool's failure is in the result; raises
        ``MCPError`` where there is no such tool, or the caller is refused.
        """
        from mcpace.server.core.local_calls import ToolCall

        return _result(await ToolCall(self._server, name, arguments, principal).awaited())

    def call_tool_sync(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """The same without an event loop, for scripts, views and tests: a plain function runs on this very thread.

        Not where an event loop runs on this thread and the tool needs one: raises ``RuntimeError`` there.
        """
        from mcpace.server.core.local_calls import ToolCall

        return _result(ToolCall(self._server, name, arguments, principal).waited())

    async def list_resources(self, *, principal: Any = TRUSTED) -> list[ListedResource]:
        """All resources, as clients are told; with a ``principal``, those that this caller is shown."""
        from mcpace.server.registration.resources import listed_resource

        shown = await self._shown("resource", self.registry.resources, principal)
        return [shared(ListedResource.model_validate(listed_resource(one))) for one in shown]

    async def list_resource_templates(self, *, principal: Any = TRUSTED) -> list[ListedTemplate]:
        """All families of resources, as clients are told; with a ``principal``, those that this caller is shown."""
        shown = await self._shown("template", self.registry.templates, principal)
        return [shared(ListedTemplate.model_validate(one.listed())) for one in shown]

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None, *, principal: Any = TRUSTED
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Reads a resource in this process; ``principal``: as in :meth:`call_tool`.

        Raises ``ResourceNotFoundError`` where there is none, ``ResourceError`` where reading fails,
        ``UnexpectedResourceError`` where it crashes, ``MCPError`` where the caller is refused.
        """
        from mcpace.server.core import requests

        work = requests.read(self._server, str(uri), context or Context(server=self._server))
        read = await (work if principal is TRUSTED else self._read_for(principal, str(uri), work))
        return cast("Iterable[ReadResourceContents] | InputRequiredResult", read)

    async def list_prompts(self, *, principal: Any = TRUSTED) -> list[ListedPrompt]:
        """All prompts, as clients are told; with a ``principal``, those that this caller is shown."""
        shown = await self._shown("prompt", self.registry.prompts, principal)
        return [shared(ListedPrompt.model_validate(prompt.listed())) for prompt in shown]

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
        *,
        principal: Any = TRUSTED,
    ) -> GetPromptResult | InputRequiredResult:
        """Fills a prompt in, in this process; ``principal``: as in :meth:`call_tool`.

        Raises ``ValueError`` where there is none, or it fails; ``MCPError`` where the caller is refused.
        """
        prompt = self.registry.prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        work = prompt.render(arguments, context or Context(server=self._server))
        try:
            rendered = await (work if principal is TRUSTED else self._render_for(principal, prompt, work))
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ValueError(str(error)) from error
        if isinstance(rendered, InputRequiredResult):
            return rendered
        messages = [PromptMessage(role=one.role, content=one.content) for one in rendered]
        return shared(GetPromptResult(description=prompt.description, messages=messages))

    async def _shown(self, kind: Kind, entries: Mapping[str, Any], principal: Any) -> list[Any]:
        """The entries that a caller is shown, in their order."""
        if principal is TRUSTED:
            return list(entries.values())
        from mcpace.server.core.local_calls import shown

        return await shown(self._server, kind, dict(entries), principal)

    async def _read_for(self, principal: Any, uri: str, work: Coroutine[Any, Any, Any]) -> Any:
        """A reading on somebody's behalf."""
        from mcpace.server.core.local_calls import admitted, bounded
        from mcpace.server.core.requests import contents_length

        with closing(work):
            found = self.registry.readable(uri)
            if found is None:
                return await work
            kind, name, entry = found
            guards = self._inside.guards_of(entry)
            await admitted(self._server, kind, name, principal, guards, uri if kind == "template" else None)
            return await bounded(guards, work, lambda read: contents_length(uri, read))

    async def _render_for(self, principal: Any, prompt: Any, work: Coroutine[Any, Any, Any]) -> Any:
        """A prompt on somebody's behalf."""
        from mcpace.server.core.local_calls import admitted, bounded
        from mcpace.server.registration.prompts import messages_length

        guards = self._inside.guards_of(prompt)
        with closing(work):
            await admitted(self._server, "prompt", prompt.name, principal, guards)
            return await bounded(guards, work, lambda rendered: messages_length(prompt.description, rendered))


def _result(raw: bytes) -> CallToolResult | InputRequiredResult:
    if b'"input_required"' in raw and from_json(raw).get("resultType") == "input_required":
        return shared(InputRequiredResult.model_validate_json(raw))
    return shared(CallToolResult.model_validate_json(raw))
