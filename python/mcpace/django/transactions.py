"""The transaction around a call: a spec's own (``atomic``), and those that the project wants around all
(``ATOMIC_REQUESTS``).

Design constraint: which databases is decided at registration, and entered in the thread that runs the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

Around = Callable[[], AbstractContextManager[Any]]


def around(function: Callable[..., Any], *, atomic: bool) -> Around | None:
    """What surrounds each call of a function; ``None`` where nothing does.

    A function may say that a project's ``ATOMIC_REQUESTS`` isn't for it, as a view does:
    ``@transaction.non_atomic_requests``.
    """
    exempt: frozenset[str] = getattr(function, "_non_atomic_requests", frozenset())
    aliases = [
        alias for alias in connections if connections.settings[alias].get("ATOMIC_REQUESTS") and alias not in exempt
    ]
    if atomic and DEFAULT_DB_ALIAS not in aliases:
        aliases.append(DEFAULT_DB_ALIAS)
    if not aliases:
        return None
    if len(aliases) == 1:
        return partial(transaction.atomic, using=aliases[0])
    return partial(_all, tuple(aliases))


def entered(made: Around | None) -> AbstractContextManager[Any]:
    """The transaction for the length of a ``with``; nothing where there is none to enter."""
    return nullcontext() if made is None else made()


@contextmanager
def _all(aliases: tuple[str, ...]) -> Iterator[None]:
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(transaction.atomic(using=alias))
        yield
