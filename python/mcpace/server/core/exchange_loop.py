"""The queue between the I/O threads and the event loop: exchanges go in, and their answers come back.

Design constraint: an I/O thread never waits here, and many exchanges wake the loop once. A request that its client
cancels is cancelled here. The code that answers (another SDK's server, or an author's middleware) runs on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import pydantic_core

if TYPE_CHECKING:
    from mcpace._core import Exchange

logger = logging.getLogger("mcpace.server")

Json = dict[str, Any]


class Refusal(Exception):
    """A JSON-RPC error that is sent to the client unchanged."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code, self.message, self.data = code, message, data


class ExchangeLoop:
    """Runs ``answer`` for each exchange, as a task of the loop on which it was opened."""

    def __init__(self, answer: Callable[[Exchange], Awaitable[bytes]]) -> None:
        self._answer = answer
        self.after: Callable[[], object] = _nothing
        """Called after the handlers of a request, before its answer is sent."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: deque[Exchange] = deque()
        self._woken = False
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Starts to answer exchanges on the running loop."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Cancels the exchanges in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loop = None

    def submit(self, exchange: Exchange) -> None:
        """Accepts an exchange. Callable from any thread."""
        if self._loop is None:
            raise RuntimeError("the server's event loop has not been started")
        self._arrived.append(exchange)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        # Cleared first, so that an exchange that arrives from here on wakes the loop again.
        self._woken = False
        loop = asyncio.get_running_loop()
        while self._arrived:
            exchange = self._arrived.popleft()
            task = loop.create_task(self._run(exchange))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            exchange.on_cancel(partial(loop.call_soon_threadsafe, task.cancel))

    async def _run(self, exchange: Exchange) -> None:
        token = current.set(exchange)
        try:
            try:
                answer = await self._answer(exchange)
            finally:
                self.after()
            exchange.reply(answer)
        except Refusal as refusal:
            data = None if refusal.data is None else pydantic_core.to_json(refusal.data, fallback=str).decode()
            exchange.fail(refusal.code, refusal.message, data)
        except asyncio.CancelledError:
            exchange.fail(-32603, "request cancelled")
            raise
        except Exception:
            logger.exception("%s could not be answered", exchange.method)
            exchange.fail(-32603, "internal error")
        finally:
            current.reset(token)


def _nothing() -> None:
    pass


current: ContextVar[Exchange] = ContextVar("mcpace_exchange")
"""The exchange that a task works for. Tasks that it starts inherit the exchange."""


def params_of(exchange: Exchange) -> Json | None:
    """The request's parameters."""
    return None if exchange.params is None else pydantic_core.from_json(exchange.params)


def notify(method: str, params: Any) -> None:
    """Sends a notification to the client of the current exchange. Does nothing if the client can't be reached."""
    exchange = current.get(None)
    if exchange is not None:
        exchange.notify(method, None if params is None else pydantic_core.to_json(params).decode())


async def ask(method: str, params: Any) -> Json:
    """Asks the client of the current exchange. Raises :class:`Refusal`."""
    exchange = current.get(None)
    if exchange is None:
        raise Refusal(-32603, "there is no request whose client could be asked")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Json] = loop.create_future()

    def settle(result: bytes | None, error: tuple[int, str] | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(Refusal(*error))
        else:
            answer.set_result(pydantic_core.from_json(result or b"{}"))

    def done(result: bytes | None, error: tuple[int, str] | None) -> None:
        loop.call_soon_threadsafe(settle, result, error)

    exchange.ask(method, None if params is None else pydantic_core.to_json(params).decode(), done)
    return await answer
