"""Runs plain functions of a Django server (``@server.tool()`` and the like) within Django's request cycle, as specs.

A synchronous function runs in its thread within the cycle and within the transactions of ``ATOMIC_REQUESTS``. A
coroutine function uses one thread of its own for all its database queries; the thread ends with the call.

Design constraint: a call of a coroutine function that uses no database starts no thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcpace.django import request_cycle
from mcpace.django.transactions import in_transaction, transaction_for
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.signature import is_async, name_of


def with_request_cycle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function in the request cycle. Raises ``RegistrationError`` where it would need a transaction on the
    event loop."""
    if not callable(function):
        return function
    made = _on_the_loop(function) if is_async(function) else _in_its_thread(function)
    # A callable object has no name of its own; tools are named after its class.
    made.__name__ = name_of(function)
    return made


def _in_its_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    surroundings = transaction_for(function, atomic=False)

    @functools.wraps(function)
    def run(*given: Any, **keywords: Any) -> Any:
        request_cycle.begin()
        try:
            with in_transaction(surroundings):
                return function(*given, **keywords)
        finally:
            request_cycle.end()

    return run


def _on_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    if transaction_for(function, atomic=False) is not None:
        # Django refuses such views, too, but only when they are called.
        raise RegistrationError(
            f"{name_of(function)} is asynchronous, and ATOMIC_REQUESTS wants a transaction around it, which an event "
            "loop can't have: write it without async, or put @transaction.non_atomic_requests above it"
        )
    from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async

    @functools.wraps(function)
    async def run(*given: Any, **keywords: Any) -> Any:
        if request_cycle.is_in_callers_cycle():
            return await function(*given, **keywords)
        async with ThreadSensitiveContext() as context:
            is_heard = request_cycle.has_listeners()
            if is_heard:
                await sync_to_async(request_cycle.begin)()
            try:
                return await function(*given, **keywords)
            finally:
                # asgiref starts the thread at the first query.
                if is_heard or context in SyncToAsync.context_to_thread_executor:
                    await sync_to_async(request_cycle.end_with_thread)()

    return run
