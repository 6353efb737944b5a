"""The transaction of a call: that of the spec (``atomic``), and those that the project requires (``ATOMIC_REQUESTS``).

Design constraint: the databases are determined at registration; the transaction begins in the thread of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

Around = Callable[[], AbstractContextManager[Any]]


def transaction_for(function: Callable[..., Any], *, atomic: bool) -> Around | None:
    """A factory of the transaction for each call of a function; ``None`` where the function needs none.

    ``@transaction.non_atomic_requests`` exempts a function from the project's ``ATOMIC_REQUESTS``, as it does a view.
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


def in_transaction(made: Around | None) -> AbstractContextManager[Any]:
    """A context manager for the transaction; it does nothing where there is no transaction."""
    return nullcontext() if made is None else made()


@contextmanager
def _all(aliases: tuple[str, ...]) -> Iterator[None]:
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(transaction.atomic(using=alias))
        yield
