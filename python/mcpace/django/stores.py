"""Where sessions, streams and rate limits are kept that several processes share: a Redis, by its URL or as one of
Django's caches (``cache:default``).

Design constraint: of a cache only its place is taken. The compiled part speaks to that Redis itself; keys of its own
stand beside the cache's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from django.conf import settings as project
from django.core.exceptions import ImproperlyConfigured

from mcpace.django.conf import setting

CACHE = "cache:"
BACKENDS = ("django.core.cache.backends.redis.RedisCache", "django_redis.cache.RedisCache")
URL = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True, slots=True)
class Place:
    """A Redis."""

    url: str
    prefix: str | None
    """What keys begin with there, where it is said."""


def place(named: str | None, what: str) -> Place | None:
    """What a setting (``what``) names: a URL, or ``cache:`` and the name of one of ``CACHES``.

    Raises ``ImproperlyConfigured`` where that is no Redis.
    """
    if named is None:
        return None
    prefix = setting("STORE_PREFIX")
    if not named.startswith(CACHE):
        return Place(named, prefix)
    alias = named.removeprefix(CACHE)
    cache = project.CACHES.get(alias)
    if cache is None:
        raise ImproperlyConfigured(f"{what}={named!r}: CACHES has no {alias!r}; there are {', '.join(project.CACHES)}")
    if cache["BACKEND"] not in BACKENDS:
        raise ImproperlyConfigured(
            f"{what}={named!r}: {cache['BACKEND']} is no Redis, and no other cache can keep sessions and streams; name "
            f"a cache of {' or '.join(BACKENDS)}, or the URL of a Redis"
        )
    own = cache.get("KEY_PREFIX")
    return Place(_url(cache, f"{what}={named!r}"), prefix or (f"{own}:mcpace:" if own else None))


def stored(named: str | None, what: str) -> dict[str, Any]:
    """The runtime's settings for a store, as keywords."""
    return _keywords("store", place(named, what))


def counted(named: str | None, what: str) -> dict[str, Any]:
    """A server's options for rate limits that are counted there."""
    return _keywords("limiter", place(named, what))


def _keywords(name: str, found: Place | None) -> dict[str, Any]:
    if found is None:
        return {}
    told = {name: found.url, "on_store_down": setting("ON_STORE_DOWN")}
    return told if found.prefix is None else told | {"store_prefix": found.prefix}


def _url(cache: Mapping[str, Any], what: str) -> str:
    """The server that a cache writes to, with what its options say of it."""
    location = cache.get("LOCATION") or ""
    # The first is written to; others are its replicas.
    first = (re.split("[;,]", location) if isinstance(location, str) else list(location))[0]
    if not first.startswith(URL):
        raise ImproperlyConfigured(f"{what}: its LOCATION is no redis://host:6379/0")
    parts = urlsplit(first)
    if parts.scheme == "unix":
        return first
    options = {key.lower(): value for key, value in (cache.get("OPTIONS") or {}).items()}
    database, user, password = (options.get(key) for key in ("db", "username", "password"))
    host = parts.netloc
    if password and "@" not in host:
        host = f"{quote(user or '', safe='')}:{quote(str(password), safe='')}@{host}"
    path = parts.path if database is None else f"/{database}"
    return urlunsplit((parts.scheme, host, path, parts.query, ""))
