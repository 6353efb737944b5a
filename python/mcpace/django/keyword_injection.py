"""Injects keywords into an author's function, which requests them by the names of its parameters.

``user``, ``request``, ``view`` and ``progress`` exist in each call; a server may add its own (``pool_seeds``). ``data``
is the validated input, and each of its keys is a keyword, too; ``instance`` is the row of the call.

Design constraint: signatures are read once, at registration. A caller's value never replaces a seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from mcpace.django.request import Call
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.signature import name_of

Seed = Callable[[Call], Any]

OF_EACH_CALL: dict[str, Seed] = {name: attrgetter(name) for name in ("user", "request", "view", "progress")}
OF_A_STEP = frozenset({"data", "serializer", "instance", "result"})
RESERVED = frozenset(OF_EACH_CALL) | OF_A_STEP


class Seeds:
    """The keywords that the server offers to every function."""

    def __init__(self, own: Mapping[str, Callable[..., Any]] | None = None) -> None:
        """``own``: additional keywords by name, each a function that takes any of ``user``, ``request`` and ``view``.
        It is called only for a function that requests the keyword."""
        self.by_name = dict(OF_EACH_CALL)
        for name, resolver in (own or {}).items():
            if name in RESERVED:
                raise RegistrationError(f"pool_seeds[{name!r}]: {name} is filled by the server already; take another")
            if not name.isidentifier() or not callable(resolver) or inspect.iscoroutinefunction(resolver):
                raise RegistrationError(f"pool_seeds[{name!r}] must be a plain function that returns the value")
            bound = Bound(resolver, OF_EACH_CALL, label=f"pool_seeds[{name!r}]")
            self.by_name[name] = partial(bound, values={})

    @property
    def names(self) -> frozenset[str]:
        """All reserved names, which no argument may have."""
        return frozenset(self.by_name) | OF_A_STEP


class Bound:
    """A function with the sources of its keywords."""

    def __init__(
        self,
        function: Callable[..., Any],
        seeds: Mapping[str, Seed],
        *,
        label: str,
        values: frozenset[str] | None = None,
    ) -> None:
        """``values``: all other available names, where they are known. Raises ``RegistrationError`` where the function
        requires any other name."""
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        by_keyword = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        self.takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
        names = [one.name for one in by_keyword]
        self._seeded = [(name, seeds[name]) for name in (seeds if self.takes_all else names) if name in seeds]
        self._named = tuple(name for name in names if name not in seeds)
        self._reserved = frozenset(seeds)
        self.names = frozenset(names)
        if values is None:
            return
        missing = [
            one.name
            for one in by_keyword
            if one.default is one.empty and one.name not in seeds and one.name not in values
        ]
        if missing:
            there = ", ".join(sorted({*seeds, *values}))
            raise RegistrationError(
                f"{label}: {name_of(function)} wants {', '.join(missing)}, which nothing fills; there are {there}"
            )

    def __call__(self, call: Call, values: Mapping[str, Any]) -> Any:
        return self.function(**self.keywords(call, values))

    def keywords(self, call: Call, values: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keywords for a call."""
        if self.takes_all:
            keywords = {name: value for name, value in values.items() if name not in self._reserved}
        else:
            keywords = {name: values[name] for name in self._named if name in values}
        for name, seed in self._seeded:
            keywords[name] = seed(call)
        return keywords
