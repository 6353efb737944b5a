"""Plain functions on a Django server (``@server.tool()`` and the like): within Django's request cycle, as specs are.

A function without ``async`` has the cycle around it, in its thread, and the project's ``ATOMIC_REQUESTS``. A coroutine
function has a thread of its call's own for all that it asks the database, which ends with the call.

Design constraint: a coroutine function that asks no database pays for no thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcpace.django import request_cycle
from mcpace.django.transactions import around, entered
from mcpace.server.errors import RegistrationError
from mcpace.server.signature import is_async, name_of


def cycled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, within the cycle. Raises ``RegistrationError`` where it would need a transaction on the event
    loop."""
    if not callable(function):
        return function
    made = _on_the_loop(function) if is_async(function) else _in_its_thread(function)
    # A callable object has none; its class's is what tools are called.
    made.__name__ = name_of(function)
    return made


def _in_its_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    surroundings = around(function, atomic=False)

    @functools.wraps(function)
    def run(*given: Any, **keywords: Any) -> Any:
        request_cycle.begin()
        try:
            with entered(surroundings):
                return function(*given, **keywords)
        finally:
            request_cycle.end()

    return run


def _on_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    if around(function, atomic=False) is not None:
        # As Django refuses such views, but when they are called.
        raise RegistrationError(
            f"{name_of(function)} is asynchronous, and ATOMIC_REQUESTS wants a transaction around it, which an event "
            "loop can't have: write it without async, or put @transaction.non_atomic_requests above it"
        )
    from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async

    @functools.wraps(function)
    async def run(*given: Any, **keywords: Any) -> Any:
        if request_cycle.is_callers_own():
            return await function(*given, **keywords)
        async with ThreadSensitiveContext() as context:
            is_heard = request_cycle.is_listened_to()
            if is_heard:
                await sync_to_async(request_cycle.begin)()
            try:
                return await function(*given, **keywords)
            finally:
                # The thread is made with the first question to the database.
                if is_heard or context in SyncToAsync.context_to_thread_executor:
                    await sync_to_async(request_cycle.end_with_thread)()

    return run
