"""langchain-mcp-adapters: `MultiServerMCPClient`, in the two ways of its documentation.

`tools`, the quickstart's and the default: `get_tools()` opens a session, and so does each tool when it is invoked.
There is nothing to connect: the contract's `connect` makes the client and asks nobody. `session`: one session for all.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from langchain_core.tools import ToolException
from langchain_mcp_adapters import sessions
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

import authorization
import driving
from driving import SessionOpener, Unsupported, listing, server_summary

SERVER = "target"
MODES = ("tools", "session")


class Driver(driving.Driver):
    """Tools of LangChain."""

    def __init__(self) -> None:
        super().__init__("langchain-mcp-adapters", authorization.Wallet())

    def session_opener(self, command: dict[str, Any]) -> SessionOpener:
        mode = command.get("mode") or MODES[0]
        if mode not in MODES:
            raise Unsupported(f"langchain-mcp-adapters has no mode {mode!r}: there are {' and '.join(MODES)}")
        connection = self.connection(command)
        return lambda: opened(connection, in_session=mode == "session")

    def connection(self, command: dict[str, Any]) -> dict[str, Any]:
        if command.get("command"):
            program, *arguments = command["command"]
            return {"transport": "stdio", "command": program, "args": arguments, "env": command.get("env")}
        connection: dict[str, Any] = {"transport": "streamable_http", "url": command["url"]}
        token, provider = self.authorization(command)
        if token is not None:
            connection["headers"] = {"Authorization": f"Bearer {token}"}
        if provider is not None:
            connection["auth"] = provider
        return connection

    def authorization(self, command: dict[str, Any]) -> tuple[str | None, Any]:
        takes_providers = "auth" in sessions.StreamableHttpConnection.__annotations__
        if (command.get("auth") or {}).get("kind") == "oauth" and not takes_providers:
            raise Unsupported("this release takes no authorization but headers")
        return super().authorization(command)

    def listed(self, reply: Any) -> dict[str, Any]:
        """The contract's summary of a list. LangChain's client requests all pages itself."""
        return listing(reply)

    def called(self, reply: Any) -> dict[str, Any]:
        if isinstance(reply, ToolException):
            return {"is_error": True, "text": str(reply)[: driving.TEXT_LIMIT]}
        blocks = reply.content if isinstance(reply.content, list) else [reply.content]
        texts = [block if isinstance(block, str) else str(block.get("text", "")) for block in blocks]
        return {"is_error": reply.status == "error", "text": "\n".join(texts)[: driving.TEXT_LIMIT]}


class Toolbox:
    """The tools as an agent would keep them."""

    def __init__(self, tools: Callable[[], Any]) -> None:
        self._tools = tools
        self._known: dict[str, Any] = {}

    async def list_tools(self) -> list[Any]:
        tools: list[Any] = await self._tools()
        self._known = {tool.name: tool for tool in tools}
        return tools

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if name not in self._known:
            await self.list_tools()
        if name not in self._known:
            raise LookupError(f"the server has no tool {name!r}")
        try:
            # Invoked as by an agent, so the answer is a message with a status.
            return await self._known[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        except ToolException as error:
            return error


@contextlib.asynccontextmanager
async def opened(
    connection: dict[str, Any], *, in_session: bool
) -> AsyncIterator[tuple[Toolbox, Callable[[], dict[str, Any]]]]:
    client = MultiServerMCPClient({SERVER: connection})
    if not in_session:
        yield Toolbox(client.get_tools), unknown
        return
    async with client.session(SERVER) as session:
        yield Toolbox(lambda: load_mcp_tools(session)), unknown


def unknown() -> dict[str, Any]:
    """An empty summary, because LangChain doesn't expose the server's description."""
    return {**server_summary("", None), "protocol_version": None}
