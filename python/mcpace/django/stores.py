"""The Redis that keeps sessions, streams and rate limits which several processes share. It is named by its URL or as
one of Django's caches (``cache:default``, ``cache:default/3`` for another database of the same Redis).

Design constraint: only the location of a cache is used. The compiled part connects to that Redis itself. In the cache's
own database its keys would be lost to ``cache.clear()``, which empties the whole database; a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from django.conf import settings as project
from django.core.exceptions import ImproperlyConfigured

from mcpace.django.conf import setting
from mcpace.server.errors import logger

CACHE = "cache:"
BACKENDS = ("django.core.cache.backends.redis.RedisCache", "django_redis.cache.RedisCache")
URL = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True, slots=True)
class RedisDatabase:
    """A Redis database."""

    url: str
    prefix: str | None
    """Prefix of the keys, where one is set."""


def place(named: str | None, what: str) -> RedisDatabase | None:
    """The Redis that the setting ``what`` names: a URL, or ``cache:`` and the name of one of ``CACHES``, optionally
    followed by ``/`` and the number of a database. Warns once where that database is the cache's own.

    Raises ``ImproperlyConfigured`` where the cache isn't a Redis.
    """
    if named is None:
        return None
    prefix = setting("STORE_PREFIX")
    if not named.startswith(CACHE):
        return RedisDatabase(named, prefix)
    alias, database = _split_alias(named.removeprefix(CACHE))
    cache = project.CACHES.get(alias)
    if cache is None:
        raise ImproperlyConfigured(f"{what}={named!r}: CACHES has no {alias!r}; there are {', '.join(project.CACHES)}")
    if cache["BACKEND"] not in BACKENDS:
        raise ImproperlyConfigured(
            f"{what}={named!r}: {cache['BACKEND']} is no Redis, and no other cache can keep sessions and streams; name "
            f"a cache of {' or '.join(BACKENDS)}, or the URL of a Redis"
        )
    if database is None and alias not in _warned:
        _warned.add(alias)
        logger.warning(
            "%s=%r: cache.clear() of %r empties the Redis database that sessions, messages and rate limits are in; "
            "name another one of its databases, such as %r",
            what, named, alias, f"{named}/1",
        )  # fmt: skip
    own = cache.get("KEY_PREFIX")
    return RedisDatabase(_url(cache, f"{what}={named!r}", database), prefix or (f"{own}:mcpace:" if own else None))


_warned: set[str] = set()
"""Caches for which this process has logged the warning."""


def _split_alias(named: str) -> tuple[str, str | None]:
    """The alias of a cache, and the database, where one is named."""
    alias, _, database = named.rpartition("/")
    return (alias, database) if alias and database.isdecimal() and named not in project.CACHES else (named, None)


def store_settings(named: str | None, what: str) -> dict[str, Any]:
    """The runtime's settings for a store, as keywords."""
    return _keywords("store", place(named, what))


def limiter_options(named: str | None, what: str) -> dict[str, Any]:
    """A server's options for rate limits that Redis counts, as keywords."""
    return _keywords("limiter", place(named, what))


def _keywords(name: str, found: RedisDatabase | None) -> dict[str, Any]:
    if found is None:
        return {}
    told = {name: found.url, "on_store_down": setting("ON_STORE_DOWN")}
    return told if found.prefix is None else told | {"store_prefix": found.prefix}


def _url(cache: Mapping[str, Any], what: str, database: str | None) -> str:
    """URL of the server that a cache writes to, including the credentials of its options. ``database`` replaces the
    cache's own database."""
    location = cache.get("LOCATION") or ""
    # The first location is the primary, to which the cache writes; the others are replicas.
    first = (re.split("[;,]", location) if isinstance(location, str) else list(location))[0]
    if not first.startswith(URL):
        raise ImproperlyConfigured(f"{what}: its LOCATION is no redis://host:6379/0")
    parts = urlsplit(first)
    if parts.scheme == "unix":
        return first if database is None else f"{first.partition('?')[0]}?{_query(parts.query, database)}"
    options = {key.lower(): value for key, value in (cache.get("OPTIONS") or {}).items()}
    user, password = options.get("username"), options.get("password")
    database = options.get("db") if database is None else database
    host = parts.netloc
    if password and "@" not in host:
        host = f"{quote(user or '', safe='')}:{quote(str(password), safe='')}@{host}"
    path = parts.path if database is None else f"/{database}"
    return urlunsplit((parts.scheme, host, path, parts.query, ""))


def _query(query: str, database: str) -> str:
    return urlencode([*((key, value) for key, value in parse_qsl(query) if key != "db"), ("db", database)])
