"""What a low-level server of the official SDK needs around its handlers, whichever its version: life, and who calls.

Design constraint: how a request is answered is the version's own (:mod:`.sdk1`, :mod:`.sdk2`); here is only what is the
same in both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcpace.server.desk import Desk

if TYPE_CHECKING:
    from mcpace._core import Exchange


class Sdk(ABC):
    """A low-level ``Server``, ready to answer exchanges."""

    def __init__(self, server: Any, around: AbstractAsyncContextManager[Any] | None = None) -> None:
        """``around`` is entered before the server's own lifespan."""
        self._server = server
        self._around = around
        self._state: Any = None
        self.desk = Desk(self.answer)

    @abstractmethod
    async def answer(self, exchange: Exchange) -> bytes:
        """The result's JSON. Raises :class:`mcpace.server.desk.Refusal`."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """The server's own, once a process. (mcp 1.x itself enters it anew for each session.)"""
        async with AsyncExitStack() as stack:
            if self._around is not None:
                await stack.enter_async_context(self._around)
            self._state = await stack.enter_async_context(self._server.lifespan(self._server))
            self.desk.open()
            try:
                yield
            finally:
                await self.desk.close()

    def _user(self, exchange: Exchange) -> Any | None:
        """Who the SDK's own token verifier said is calling, where the SDK's code looks for them."""
        if exchange.token is None:
            return None
        user = import_module("mcp.server.auth.middleware.bearer_auth").AuthenticatedUser(exchange.token)
        import_module("mcp.server.auth.middleware.auth_context").auth_context_var.set(user)
        return user
