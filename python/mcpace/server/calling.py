"""Calling an author's function from a coroutine, be it one itself or not.

Design constraint: asyncio is loaded when a call needs it, not with the server. Context variables pass into the thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcpace.server.errors import MCPError
from mcpace.types import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT


async def call_function(function: Callable[..., Any], is_async: bool, keywords: Mapping[str, Any]) -> Any:
    """The function's value. One that is no coroutine function runs in a thread, so that it holds up nobody."""
    if is_async:
        return await function(**keywords)
    import asyncio

    return await asyncio.to_thread(function, **keywords)


async def asked(answer: Awaitable[bytes]) -> bytes:
    """A client's answer. Raises ``MCPError`` where there is none, with the client's own code where it refused.

    A capability that the client didn't declare has an answer of its own, which the compiled part knows.
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
