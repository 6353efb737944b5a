"""Calls of authors' functions, plain or asynchronous, from a coroutine.

Design constraint: asyncio is loaded when a call needs it, not with the server. Threads receive the context variables.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcpace.server.errors import MCPError
from mcpace.types import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT


async def call_function(function: Callable[..., Any], is_async: bool, keywords: Mapping[str, Any]) -> Any:
    """Calls a function. A plain function runs in a thread, so that it does not block the event loop."""
    if is_async:
        return await function(**keywords)
    if "anyio.from_thread" in sys.modules:
        # In a thread of anyio's the function may use `anyio.from_thread`.
        from anyio import to_thread

        return await to_thread.run_sync(functools.partial(function, **keywords), abandon_on_cancel=True)
    import asyncio

    return await asyncio.to_thread(function, **keywords)


async def await_answer(answer: Awaitable[bytes]) -> bytes:
    """Awaits a client's answer. Raises ``MCPError`` if there is none, with the client's own code if it refused.

    The error for an undeclared capability passes unchanged, since the compiled part answers it.
    """
    try:
        return await answer
    except Exception as error:
        kind = getattr(error, "kind", None)
        if kind is None or kind == "undeclared":
            raise
        codes = {"unreachable": INVALID_REQUEST, "timed-out": REQUEST_TIMEOUT}
        code = getattr(error, "code", None)
        message = getattr(error, "message", None) or str(error)
        raise MCPError(codes.get(kind, INTERNAL_ERROR) if code is None else code, message) from error


@asynccontextmanager
async def entered_in_thread(generator: Callable[..., Any], keywords: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The value of a plain generator, for a coroutine. The generator runs in threads, so that it does not block the
    event loop."""
    import asyncio

    manager = contextmanager(generator)(**keywords)
    value = await asyncio.to_thread(manager.__enter__)
    try:
        yield value
    except BaseException as error:
        if not await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(manager.__exit__, None, None, None)
