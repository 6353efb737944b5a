"""Base of the adopted low-level servers of the official SDK: the lifespan and the caller's identity.

Design constraint: the handlers are run by :mod:`.official_v1` and :mod:`.official_v2`; this module has only the code
that both versions need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcpace.server.core.exchange_loop import ExchangeLoop

if TYPE_CHECKING:
    from mcpace._core import Exchange


class Sdk(ABC):
    """A low-level ``Server``, ready to answer exchanges."""

    def __init__(self, server: Any, around: AbstractAsyncContextManager[Any] | None = None) -> None:
        """``around`` is entered before the server's own lifespan."""
        self._server = server
        self._around = around
        self._state: Any = None
        self.exchange_loop = ExchangeLoop(self.answer)

    @abstractmethod
    async def answer(self, exchange: Exchange) -> bytes:
        """The result's JSON. Raises :class:`mcpace.server.core.exchange_loop.Refusal`."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Enters the server's own lifespan once in each process. (mcp 1.x itself enters it for each session.)"""
        async with AsyncExitStack() as stack:
            if self._around is not None:
                await stack.enter_async_context(self._around)
            self._state = await stack.enter_async_context(self._server.lifespan(self._server))
            self.exchange_loop.open()
            try:
                yield
            finally:
                await self.exchange_loop.close()

    def _user(self, exchange: Exchange) -> Any | None:
        """The user that the SDK's token verifier found. Also sets the context variable that the SDK's code reads."""
        if exchange.token is None:
            return None
        user = import_module("mcp.server.auth.middleware.bearer_auth").AuthenticatedUser(exchange.token)
        import_module("mcp.server.auth.middleware.auth_context").auth_context_var.set(user)
        return user
