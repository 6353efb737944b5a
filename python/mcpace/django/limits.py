"""Rate limits that Django's cache counts, so that processes which share a cache share the limit.

A fixed window is a stretch of the clock's time with a count of its own. A sliding window has sixteen such counts, and
looks at them all: what this one and the sixteen before it have, it never lets pass more than that, in any window.

Design constraint: exact. A call is counted by one ``incr``, which Redis and memcached do in one step; a cache that
reads and writes instead (database, files) would let two calls at once count as one, and is refused. The local-memory
cache is exact within its process, and counts for that process alone.

Deliberately absent: token buckets, which no cache can take from in one step. The runtime's ``RateLimit`` can, also
for several processes (``limiter=``, or the setting ``LIMITER``).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.exceptions import ImproperlyConfigured

from mcpace.django.request import Call
from mcpace.server.errors import RegistrationError, logger
from mcpace.server.guards import parsed_rate

PARTS = 16
"""Of a sliding window; the runtime's own has as many."""

ATTEMPTS = 8
"""To count one call: a cache may push a count out between two steps."""

By = Literal["user", "everyone"] | Callable[[Any], str]
Algorithm = Literal["fixed-window", "sliding-window"]
OnCacheDown = Literal["refuse", "allow"]


class LimitExceeded(Exception):
    """A limit was reached. ``retry_after_s`` is when to come again, at the latest."""

    def __init__(self, rate: str, retry_after_s: float) -> None:
        super().__init__(f"more than {rate}: try again in {math.ceil(retry_after_s)} s")
        self.retry_after_s = retry_after_s


class Uncounted(Exception):
    """The cache is away, so nobody knows whether a limit was reached."""

    def __init__(self) -> None:
        super().__init__("calls can't be counted at the moment; try again later")


class CacheRateLimit:
    """``CacheRateLimit("100/minute")``: so many calls of a tool, by user, in a window of the time."""

    def __init__(
        self,
        rate: str,
        *,
        by: By = "user",
        cache: str = "default",
        name: str | None = None,
        algorithm: Algorithm = "fixed-window",
        on_cache_down: OnCacheDown = "refuse",
    ) -> None:
        """``by``: ``user`` (callers without one share a count), ``everyone``, or a function of REST framework's
        request. ``name``: limits of one name share a count; the tool's if not said. ``on_cache_down``: what becomes of
        calls while the cache is away."""
        if by not in ("user", "everyone") and not callable(by):
            raise RegistrationError(f"CacheRateLimit(by={by!r}): 'user', 'everyone', or a function of the request")
        if algorithm not in ("fixed-window", "sliding-window"):
            raise RegistrationError(
                f"CacheRateLimit(algorithm={algorithm!r}): a cache counts 'fixed-window' and 'sliding-window'; "
                "RateLimit knows 'token-bucket', and counts in Redis where the setting LIMITER names one"
            )
        if on_cache_down not in ("refuse", "allow"):
            raise RegistrationError(f"CacheRateLimit(on_cache_down={on_cache_down!r}): 'refuse' or 'allow'")
        self.rate = rate
        self.calls, self.per_s = parsed_rate(rate)
        self._by = by
        self._cache = cache
        self._name = name
        self._is_sliding = algorithm == "sliding-window"
        self._on_down = on_cache_down
        self._is_away = False
        if type(caches[cache]).incr is BaseCache.incr:
            raise ImproperlyConfigured(
                f"the cache {cache!r} ({type(caches[cache]).__name__}) can't count in one step, so a limit on it would "
                "let calls through: use Redis or memcached, or the local-memory cache for one process"
            )

    def take(self, tool: str, call: Call) -> None:
        """Counts a call. Raises :class:`LimitExceeded` where there were too many, :class:`Uncounted` where the cache is
        away and calls are refused then."""
        key = self._key(tool, call)
        try:
            wait_s = self._slid(key, time.time()) if self._is_sliding else self._counted(key, time.time())
        except Exception as error:
            self._away(error)
            if self._on_down == "refuse":
                raise Uncounted from error
            return
        if self._is_away:
            self._is_away = False
            logger.warning("the cache %r counts calls again", self._cache)
        if wait_s is not None:
            raise LimitExceeded(self.rate, wait_s)

    def _counted(self, key: str, now: float) -> float | None:
        """Seconds to wait, where the window is full."""
        window = int(now // self.per_s)
        taken = _one_more(caches[self._cache], f"{key}:{window}", math.ceil(self.per_s) + 1)
        return None if taken <= self.calls else (window + 1) * self.per_s - now

    def _slid(self, key: str, now: float) -> float | None:
        """The same of a window that ends now."""
        cache = caches[self._cache]
        width = self.per_s / PARTS
        part = int(now // width)
        mine = f"{key}:{part}"
        taken = _one_more(cache, mine, math.ceil(self.per_s + width) + 1)
        # Counted first and read then: of two at once, each sees the other.
        earlier = {before: f"{key}:{before}" for before in range(part - PARTS, part)}
        counts = cache.get_many(earlier.values())
        left = taken + sum(counts.values())
        if left <= self.calls:
            return None
        # It wasn't let pass, so it doesn't count.
        with suppress(ValueError):
            cache.decr(mine)
        for before, name in earlier.items():
            left -= counts.get(name, 0)
            if left <= self.calls:
                return (before + PARTS + 1) * width - now
        return (part + PARTS + 1) * width - now

    def _key(self, tool: str, call: Call) -> str:
        if self._by == "everyone":
            who = ""
        elif callable(self._by):
            who = str(self._by(call.request))
        else:
            who = str(getattr(call.user, "pk", None) or "")
        whole = f"{self._name or tool}\0{self.rate}\0{self._is_sliding}\0{who}"
        return f"mcpace:limit:{hashlib.sha256(whole.encode()).hexdigest()[:32]}"

    def _away(self, error: Exception) -> None:
        if self._is_away:
            return
        self._is_away = True
        what = "are refused" if self._on_down == "refuse" else "pass uncounted"
        logger.error("the cache %r can't count calls (%s: %s): they %s", self._cache, type(error).__name__, error, what)


def _one_more(cache: BaseCache, key: str, keeps_s: int) -> int:
    """Adds one to a count, which begins with the first; what it is then."""
    for _ in range(ATTEMPTS):
        if cache.add(key, 1, keeps_s):
            return 1
        try:
            taken: int = cache.incr(key)
        except ValueError:
            # It was pushed out in between.
            continue
        if taken == 1:
            # It ended between Django's look and its count (Redis cache), and was made anew without an end.
            cache.touch(key, keeps_s)
        return taken
    raise RuntimeError("it keeps no counts")
