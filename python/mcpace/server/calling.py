"""Calling an author's function from a coroutine, be it one itself or not.

Design constraint: asyncio is loaded when a call needs it, not with the server. Context variables pass into the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


async def call_function(function: Callable[..., Any], is_async: bool, keywords: Mapping[str, Any]) -> Any:
    """The function's value. One that is no coroutine function runs in a thread, so that it holds up nobody."""
    if is_async:
        return await function(**keywords)
    import asyncio

    return await asyncio.to_thread(function, **keywords)
