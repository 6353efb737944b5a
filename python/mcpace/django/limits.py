"""Rate limits that Django's cache counts, so that processes which share a cache share the limit.

A fixed window: the first call begins it, the cache adds up the rest and forgets it by itself.

Design constraint: exact. Each call is one ``incr``, which Redis and memcached do in one step; a cache that reads and
writes instead (database, files) would let two calls at once count as one, and is refused. The local-memory cache is
exact within its process, and counts for that process alone.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from typing import Any, Literal

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.exceptions import ImproperlyConfigured

from mcpace.django.request import Call

_RATE = re.compile(r"(\d+)/(?:(\d+)\s*)?(second|minute|hour|day|s|min|m|h|d)s?")
_SECONDS = {"s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}

By = Literal["user", "everyone"] | Callable[[Any], str]


class LimitExceeded(Exception):
    """A limit was reached. ``retry_after_s`` is when to come again, at the latest."""

    def __init__(self, rate: str, retry_after_s: float) -> None:
        super().__init__(f"more than {rate}: try again in {math.ceil(retry_after_s)} s")
        self.retry_after_s = retry_after_s


class CacheRateLimit:
    """``CacheRateLimit("100/minute")``: so many calls of a tool, by user, in any window that a first call begins."""

    def __init__(self, rate: str, *, by: By = "user", cache: str = "default", name: str | None = None) -> None:
        """``by``: ``user`` (callers without one share a count), ``everyone``, or a function of REST framework's
        request. ``name``: limits of one name share a count; the tool's if not said."""
        found = _RATE.fullmatch(rate)
        if found is None or int(found[1]) < 1 or found[2] == "0":
            raise ImproperlyConfigured(f"the rate {rate!r} is none: write 100/minute, or 5/10 seconds")
        if by not in ("user", "everyone") and not callable(by):
            raise ImproperlyConfigured(f"by={by!r}: 'user', 'everyone', or a function of the request")
        self.rate = rate
        self.calls = int(found[1])
        self.per_s = int(found[2] or 1) * _SECONDS[found[3]]
        self._by = by
        self._cache = cache
        self._name = name
        if type(caches[cache]).incr is BaseCache.incr:
            raise ImproperlyConfigured(
                f"the cache {cache!r} ({type(caches[cache]).__name__}) can't count in one step, so a limit on it would "
                "let calls through: use Redis or memcached, or the local-memory cache for one process"
            )

    def take(self, tool: str, call: Call) -> None:
        """Counts a call. Raises :class:`LimitExceeded` where there were too many."""
        cache = caches[self._cache]
        key = self._key(tool, call)
        # Where the window ended between the two, there is a new one to begin; twice in a row doesn't happen.
        for _ in range(3):
            if cache.add(key, 1, self.per_s):
                return
            try:
                taken = cache.incr(key)
            except ValueError:
                continue
            if taken == 1:
                # Its window ended between Django's look and its count (Redis cache): a new one, without an end.
                cache.touch(key, self.per_s)
            if taken > self.calls:
                raise LimitExceeded(self.rate, self._left(cache, key))
            return

    def _key(self, tool: str, call: Call) -> str:
        if self._by == "everyone":
            who = ""
        elif callable(self._by):
            who = str(self._by(call.request))
        else:
            who = str(getattr(call.user, "pk", None) or "")
        whole = f"{self._name or tool}\0{self.rate}\0{who}"
        return f"mcpace:limit:{hashlib.sha256(whole.encode()).hexdigest()[:32]}"

    def _left(self, cache: Any, key: str) -> float:
        # Only some caches tell it.
        ttl = getattr(cache, "ttl", None)
        left = ttl(key) if callable(ttl) else None
        return float(left) if left else float(self.per_s)
