"""``Client`` with FastMCP's names: for tests of a server in memory, and for URLs and commands.

Design constraint: the class is an interface to :class:`mcpace.Client`. Options that it lacks are refused by their
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from mcpace.client import Client as PlainClient
from mcpace.client import StdioServerParameters
from mcpace.server.errors import MCPError, ToolError, UnsupportedOption
from mcpace.types import CallToolResult

_CALLBACKS = {
    "sampling_handler": "sampling_callback",
    "log_handler": "logging_callback",
    "message_handler": "message_handler",
}


class ToolCallResult(CallToolResult):
    """A tool's result. ``data`` is its value: the structured content without the wrapping."""

    @property
    def data(self) -> Any:
        """The value of the structured content, unwrapped where it is wrapped, as JSON types; ``None`` without
        structured content."""
        structured = self.structured_content
        own = (self.meta or {}).get("fastmcp") or {}
        return structured["result"] if structured and own.get("wrap_result") else structured


class Client:
    """A client of one server: a ``FastMCP`` of this process, a URL, or a command.

    ``async with Client(mcp) as client: result = await client.call_tool("add", {"a": 1})``
    """

    def __init__(self, transport: Any, *, timeout: float | None = None, **options: Any) -> None:
        unknown = {name for name, value in options.items() if value is not None} - _CALLBACKS.keys()
        if unknown:
            raise UnsupportedOption(
                f"Client() has no {', '.join(sorted(unknown))}: use mcpace.Client (see help(mcpace.Client))"
            )
        given = {_CALLBACKS[name]: value for name, value in options.items() if value is not None}
        if timeout is not None:
            given["read_timeout_seconds"] = timeout
        self._plain = PlainClient(_server_location(transport), **given)
        self._is_connected = False

    async def __aenter__(self) -> Self:
        await self._plain.connect()
        self._is_connected = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection."""
        self._is_connected = False
        await self._plain.close()

    def is_connected(self) -> bool:
        """Whether the client is within its ``async with``."""
        return self._is_connected

    async def ping(self) -> bool:
        """Checks that the server answers."""
        await (
            self._plain.list_tools()
        ) if self._plain.protocol_version >= "2026-07-28" else await self._plain.send_ping()
        return True

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress_handler: Callable[[float, float | None, str | None], Any] | None = None,
        raise_on_error: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolCallResult:
        """Calls a tool. Raises ``ToolError`` where it fails, unless ``raise_on_error=False``."""
        try:
            result = await self._plain.call_tool(name, arguments, timeout, progress_handler, meta=meta)
        except MCPError as error:
            if raise_on_error and "tool" in error.message.lower():
                raise ToolError(error.message) from error
            raise
        if result.is_error and raise_on_error:
            raise ToolError("\n".join(getattr(block, "text", "") for block in result.content))
        return ToolCallResult.model_validate(result.model_dump(by_alias=True))

    async def list_tools(self) -> list[Any]:
        """All tools."""
        return await self._all("list_tools", "tools")

    async def list_resources(self) -> list[Any]:
        """All resources."""
        return await self._all("list_resources", "resources")

    async def list_resource_templates(self) -> list[Any]:
        """All resource templates."""
        return await self._all("list_resource_templates", "resource_templates")

    async def list_prompts(self) -> list[Any]:
        """All prompts."""
        return await self._all("list_prompts", "prompts")

    async def read_resource(self, uri: Any) -> list[Any]:
        """A resource's contents."""
        return list((await self._plain.read_resource(str(uri))).contents)

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """A rendered prompt. Arguments that are no text are written as JSON."""
        from mcpace.fastmcp.content import text_of

        given = {key: one if isinstance(one, str) else text_of(one) for key, one in (arguments or {}).items()}
        return await self._plain.get_prompt(name, given)

    async def complete(self, ref: Any, argument: Mapping[str, str], context_arguments: Any = None) -> Any:
        """Proposals for an argument of a prompt or a resource template."""
        return (await self._plain.complete(ref, argument, context_arguments)).completion

    async def set_logging_level(self, level: Any) -> None:
        """Sets the lowest level of wanted log messages."""
        await self._plain.set_logging_level(level)

    async def _all(self, method: str, member: str) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            page = await getattr(self._plain, method)(cursor=cursor)
            found += getattr(page, member)
            cursor = page.next_cursor
            if cursor is None:
                return found


def _server_location(transport: Any) -> Any:
    if isinstance(transport, Mapping):
        servers = transport.get("mcpServers", transport)
        if len(servers) != 1:
            raise UnsupportedOption("Client() takes the configuration of one server; make a client of each")
        [one] = servers.values()
        if "url" in one:
            return one["url"]
        return StdioServerParameters(command=one["command"], args=one.get("args", []), env=one.get("env"))
    text = str(transport) if not hasattr(transport, "registry") else ""
    if text.endswith(".py") and not text.startswith("http"):
        import sys

        return StdioServerParameters(command=sys.executable, args=[text])
    return transport
