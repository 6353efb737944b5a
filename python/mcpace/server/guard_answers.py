"""What a guard's function answers, as the text that the compiled part reads.

Design constraint: such a function never raises: who asks runs on the server's own threads. Nothing stands for yes,
``=`` and the text for a rate limit's key, ``!`` for no, followed by JSON of a refusal's words and scopes where it has
any. (``crates/py/src/server/auth/permission_callback.rs`` reads it.)
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from typing import Any

from mcpace.server.guards import Denied

logger = logging.getLogger("mcpace.server")


def answering(function: Callable[..., Any], is_key: bool) -> tuple[Callable[[Any], Any], bool]:
    """A function that answers so, and whether it is a coroutine function. It logs what ``function`` must not raise."""
    what = "the key of a rate limit" if is_key else "the permission"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__

    def answered(value: Any) -> str:
        if is_key:
            if isinstance(value, str):
                return "=" + value
            raise TypeError(f"{name} returned {type(value).__name__}, not str")
        if value is None or value is True:
            return ""
        if value is False:
            return "!"
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"{name} returned {type(value).__name__}: True, False or None is an answer")

    def refused(error: Exception) -> str:
        try:
            if isinstance(error, Denied):
                return "!" + json.dumps([str(error.message), [str(scope) for scope in error.scopes]])
        except Exception as second:
            error = second
        logger.error("%s %s failed, which refuses", what, name, exc_info=error)
        return "!"

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):

        async def ask_later(asked: Any) -> str:
            try:
                return answered(await function(asked))
            except Exception as error:
                return refused(error)

        return ask_later, True

    def ask(asked: Any) -> str:
        try:
            return answered(function(asked))
        except Exception as error:
            return refused(error)

    return ask, False
