"""Turns what a guard's function returns or raises into a ``GuardAnswer`` for the compiled part.

Design constraint: such a function never raises, because the server's own threads call it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from mcpace._core import GuardAnswer
from mcpace.server.auth.guards import Denied

logger = logging.getLogger("mcpace.server")

ALLOWED = GuardAnswer.allowed()
DENIED = GuardAnswer.denied()


def answering(function: Callable[..., Any], is_key: bool) -> tuple[Callable[[Any], Any], bool]:
    """The function that answers with a ``GuardAnswer``, and whether it is a coroutine function. It logs unexpected
    exceptions of ``function``."""
    what = "the key of a rate limit" if is_key else "the permission"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__

    def answer_of(value: Any) -> GuardAnswer:
        if is_key:
            if isinstance(value, str):
                return GuardAnswer.keyed_by(value)
            raise TypeError(f"{name} returned {type(value).__name__}, not str")
        if value is None or value is True:
            return ALLOWED
        if value is False:
            return DENIED
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"{name} returned {type(value).__name__}: True, False or None is an answer")

    def refusal_of(error: Exception) -> GuardAnswer:
        try:
            if isinstance(error, Denied):
                return GuardAnswer.denied(str(error.message), [str(scope) for scope in error.scopes])
        except Exception as second:
            error = second
        logger.error("%s %s failed, which refuses", what, name, exc_info=error)
        return DENIED

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):

        async def ask_later(asked: Any) -> GuardAnswer:
            try:
                return answer_of(await function(asked))
            except Exception as error:
                return refusal_of(error)

        return ask_later, True

    def ask(asked: Any) -> GuardAnswer:
        try:
            return answer_of(function(asked))
        except Exception as error:
            return refusal_of(error)

    return ask, False
