"""Rate limits that Django's cache counts, so that processes which share a cache share the limit.

A fixed window is an interval of clock time with its own count. A sliding window is divided into sixteen parts with one
count each. A call passes while the sum of the current part and the sixteen parts before it is within the limit, so no
window of any position has more calls than the limit.

Design constraint: counts are exact. A call is counted by one ``incr``, which is atomic in Redis and memcached. A cache
that reads and then writes (database, files) could count two concurrent calls as one, and is refused. The local-memory
cache is exact within one process, and counts for that process alone.

Deliberately absent: token buckets, because no cache can take a token atomically. The runtime's ``RateLimit`` can, also
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
from mcpace.server.auth.guards import parsed_rate
from mcpace.server.errors import RegistrationError, logger

PARTS = 16
"""Number of parts of a sliding window, equal to that of the runtime's own limiter."""

ATTEMPTS = 8
"""Maximum number of attempts to count one call. A cache may evict a count between ``add`` and ``incr``."""

By = Literal["user", "everyone"] | Callable[[Any], str]
Algorithm = Literal["fixed-window", "sliding-window"]
OnCacheDown = Literal["refuse", "allow"]


class LimitExceeded(Exception):
    """A limit was reached. A call is possible again after ``retry_after_s`` at the latest."""

    def __init__(self, rate: str, retry_after_s: float) -> None:
        super().__init__(f"more than {rate}: try again in {math.ceil(retry_after_s)} s")
        self.retry_after_s = retry_after_s


class Uncounted(Exception):
    """The cache is unavailable, so it is unknown whether a limit was reached."""

    def __init__(self) -> None:
        super().__init__("calls can't be counted at the moment; try again later")


class CacheRateLimit:
    """``CacheRateLimit("100/minute")``: the maximum number of calls of a tool per user and time window."""

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
        """``by``: ``user`` (callers without a user share a count), ``everyone``, or a function of REST framework's
        request. ``name``: limits of one name share a count; by default the tool's name. ``on_cache_down``: whether
        calls are refused or allowed while the cache is unavailable."""
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
        """Counts a call. Raises :class:`LimitExceeded` where the limit was reached, :class:`Uncounted` where the cache
        is unavailable and calls are refused meanwhile."""
        key = self._key(tool, call)
        try:
            wait_s = self._count_sliding(key, time.time()) if self._is_sliding else self._count_fixed(key, time.time())
        except Exception as error:
            self._report_outage(error)
            if self._on_down == "refuse":
                raise Uncounted from error
            return
        if self._is_away:
            self._is_away = False
            logger.warning("the cache %r counts calls again", self._cache)
        if wait_s is not None:
            raise LimitExceeded(self.rate, wait_s)

    def _count_fixed(self, key: str, now: float) -> float | None:
        """Counts a call in its fixed window. Returns the seconds to wait where the window is full."""
        window = int(now // self.per_s)
        taken = _increment(caches[self._cache], f"{key}:{window}", math.ceil(self.per_s) + 1)
        return None if taken <= self.calls else (window + 1) * self.per_s - now

    def _count_sliding(self, key: str, now: float) -> float | None:
        """Counts a call in the sliding window that ends now. Returns the seconds to wait where it is full."""
        cache = caches[self._cache]
        width = self.per_s / PARTS
        part = int(now // width)
        mine = f"{key}:{part}"
        taken = _increment(cache, mine, math.ceil(self.per_s + width) + 1)
        # The increment precedes the read, so two concurrent calls see each other.
        earlier = {before: f"{key}:{before}" for before in range(part - PARTS, part)}
        counts = cache.get_many(earlier.values())
        left = taken + sum(counts.values())
        if left <= self.calls:
            return None
        # A refused call doesn't count.
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

    def _report_outage(self, error: Exception) -> None:
        if self._is_away:
            return
        self._is_away = True
        what = "are refused" if self._on_down == "refuse" else "pass uncounted"
        logger.error("the cache %r can't count calls (%s: %s): they %s", self._cache, type(error).__name__, error, what)


def _increment(cache: BaseCache, key: str, keeps_s: int) -> int:
    """Increments a count, creating it where necessary, and returns the new value."""
    for _ in range(ATTEMPTS):
        if cache.add(key, 1, keeps_s):
            return 1
        try:
            taken: int = cache.incr(key)
        except ValueError:
            # The cache evicted the count after `add`.
            continue
        if taken == 1:
            # The count expired between the check and the increment of Django's Redis cache, and Redis created it anew
            # without an expiry.
            cache.touch(key, keeps_s)
        return taken
    raise RuntimeError("it keeps no counts")
