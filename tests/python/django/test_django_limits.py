"""Rate limits that Django's cache counts: on the local-memory cache, and on a real Redis."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from support.django_project import USER, server, setting

# isort: split
from django.core.cache import cache, caches
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from rest_framework_services import ServiceSpec

from mcpace import RateLimit
from mcpace.django import CacheRateLimit, MCPServer, stores
from mcpace.django import limits as module
from mcpace.django.limits import Algorithm, LimitExceeded, Uncounted
from mcpace.django.request import Call
from mcpace.django.stores import RedisDatabase, place
from mcpace.server.errors import MCPError
from support.redis_server import RedisServer

REDIS = "django.core.cache.backends.redis.RedisCache"
LOCAL = "django.core.cache.backends.locmem.LocMemCache"


@pytest.fixture(params=["local", "redis"])
def counting(request: pytest.FixtureRequest) -> Iterator[str]:
    """A cache that supports atomic counting."""
    if request.param == "redis":
        cache = {"BACKEND": REDIS, "LOCATION": request.getfixturevalue("redis").url}
    else:
        cache = {"BACKEND": LOCAL, "LOCATION": "limits"}
    with override_settings(CACHES={"default": cache}):
        caches["default"].clear()
        yield request.param
        caches.close_all()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock of the limits."""

    class Clock:
        now = 1_000_000.0

        def time(self) -> float:
            return self.now

    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def taken(limit: CacheRateLimit, tool: str = "t", user: Any = USER) -> float | None:
    """Seconds to wait; ``None`` where the call passes."""
    try:
        limit.take(tool, Call(tool, {}, user=user))
    except LimitExceeded as exceeded:
        return exceeded.retry_after_s
    return None


def test_a_fixed_window_is_the_clocks(counting: str, clock: Any) -> None:
    limit = CacheRateLimit("2/10 s")
    assert [taken(limit) for _ in range(2)] == [None, None]
    clock.now += 4
    assert taken(limit) == pytest.approx(6)
    clock.now += 6
    assert taken(limit) is None


def test_a_sliding_window_never_lets_more_pass(counting: str, clock: Any) -> None:
    """The limit holds in any ten seconds, and a caller that waits as long as requested passes."""
    limit, passed = CacheRateLimit("5/10s", algorithm="sliding-window"), []
    for _ in range(400):
        wait_s = taken(limit)
        if wait_s is None:
            passed.append(clock.now)
            clock.now += 0.3
        else:
            # A refused call doesn't count, so retrying costs nothing.
            assert taken(limit) is not None
            clock.now += wait_s
            assert taken(limit) is None
            passed.append(clock.now)
    windows = [sum(start <= one < start + 10 for one in passed) for start in passed]
    assert max(windows) == 5
    # The requested wait is at most one sixteenth of the window too long.
    assert len(passed) >= (passed[-1] - passed[0]) / 10 * 5 * 16 / 17 - 5


@pytest.mark.parametrize("algorithm", ["fixed-window", "sliding-window"])
def test_calls_at_once_are_each_counted(counting: str, algorithm: Algorithm, clock: Any) -> None:
    limit = CacheRateLimit("20/hour", algorithm=algorithm)
    outcomes: list[float | None] = []
    ready = threading.Barrier(8)

    def run() -> None:
        ready.wait(30)
        outcomes.extend(taken(limit) for _ in range(10))
        caches.close_all()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(outcomes), outcomes.count(None)) == (80, 20)


def test_a_count_without_an_end_locks_nobody_out(redis: RedisServer, clock: Any) -> None:
    """Redis' ``INCR`` recreates a key that has just expired, and the new key never expires."""
    with override_settings(CACHES={"default": {"BACKEND": REDIS, "LOCATION": redis.url}}):
        limit = CacheRateLimit("2/10s")
        assert taken(limit) is None
        with Redis.from_url(redis.url) as client:
            (key,) = client.keys()
            client.set(key, 0)
            assert client.ttl(key) == -1
            assert taken(limit) is None
            assert 0 < client.ttl(key) <= 11
        caches.close_all()


@pytest.mark.parametrize("on_down", ["refuse", "allow"])
def test_a_cache_that_is_away_is_told_once(on_down: Any, redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with override_settings(CACHES={"default": {"BACKEND": REDIS, "LOCATION": redis.url}}):
        made = server()
        limit = CacheRateLimit("100/hour", on_cache_down=on_down)
        spec = ServiceSpec(service=lambda: {"n": 1}, permission_classes=[], atomic=False)
        made.register_service_tool(name="t", spec=spec, rate_limits=[limit])
        assert made.call_tool("t").structured_content == {"n": 1}
        redis.kill()
        with caplog.at_level(logging.WARNING, "mcpace.server"):
            for _ in range(3):
                if on_down == "allow":
                    assert made.call_tool("t").structured_content == {"n": 1}
                else:
                    with pytest.raises(Uncounted, match="can't be counted at the moment"):
                        made.call_tool("t")
            redis.start()
            assert made.call_tool("t").structured_content == {"n": 1}
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 2, said
        assert "can't count calls" in said[0]
        assert "counts calls again" in said[1]
        caches.close_all()


def test_limits_count_apart(clock: Any) -> None:
    cache.clear()
    one, other = CacheRateLimit("1/hour"), CacheRateLimit("1/hour", algorithm="sliding-window")
    shared = CacheRateLimit("1/hour", name="shared", by="everyone")
    assert [taken(limit, tool) for limit in (one, other) for tool in ("a", "b")] == [None] * 4
    assert taken(one, "a") is not None
    assert taken(shared, "a") is None
    assert taken(shared, "b") is not None


# Django's caches as a store -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cache", "url", "prefix"),
    [
        ({"LOCATION": "redis://one:6379/2"}, "redis://one:6379/2", None),
        ({"LOCATION": ["redis://one:1", "redis://replica:1"], "OPTIONS": {"db": 3}}, "redis://one:1/3", None),
        ({"LOCATION": "redis://one:1;redis://two:1", "KEY_PREFIX": "shop"}, "redis://one:1", "shop:mcpace:"),
        (
            {"LOCATION": "rediss://one:1/0", "OPTIONS": {"username": "me", "password": "p@ss/word"}},
            "rediss://me:p%40ss%2Fword@one:1/0",
            None,
        ),
        ({"LOCATION": "redis://:secret@one:1", "OPTIONS": {"password": "other"}}, "redis://:secret@one:1", None),
        ({"LOCATION": "unix:///run/redis.sock?db=1"}, "unix:///run/redis.sock?db=1", None),
    ],
)
def test_a_redis_cache_is_a_place(cache: dict[str, Any], url: str, prefix: str | None) -> None:
    with override_settings(CACHES={"default": {"BACKEND": LOCAL}, "other": {"BACKEND": REDIS, **cache}}):
        assert place("cache:other", "STORE") == RedisDatabase(url, prefix)
        with setting(STORE_PREFIX="mine:"):
            assert place("cache:other", "STORE") == RedisDatabase(url, "mine:")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("redis://one:6379/2", "redis://one:6379/3"),
        ("redis://one:6379", "redis://one:6379/3"),
        ("unix:///run/redis.sock?db=1&protocol=resp3", "unix:///run/redis.sock?protocol=resp3&db=3"),
    ],
)
def test_another_database_of_a_caches_redis_can_be_named(location: str, url: str) -> None:
    cache = {"BACKEND": REDIS, "LOCATION": location, "OPTIONS": {"db": 5}}
    with override_settings(CACHES={"default": {"BACKEND": LOCAL}, "other": cache, "other/4": {"BACKEND": LOCAL}}):
        assert place("cache:other/3", "STORE") == RedisDatabase(url, None)
        for named, said in (("cache:other/x", "CACHES has no 'other/x'"), ("cache:other/4", "is no Redis")):
            with pytest.raises(ImproperlyConfigured, match=said):
                place(named, "STORE")


def test_clearing_a_cache_forgets_what_is_counted_in_its_database(
    redis: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning is logged for a shared database, and a separate database isn't affected."""
    monkeypatch.setattr(stores, "_warned", set())
    spec = ServiceSpec(service=lambda: {"n": 1}, permission_classes=[], atomic=False)
    with override_settings(CACHES={"default": {"BACKEND": REDIS, "LOCATION": redis.url}}):
        for named, is_kept in (("cache:default/3", True), ("cache:default", False)):
            with setting(LIMITER=named):
                assert "cache.clear()" not in caplog.text
                server()
                made = server()
                made.register_service_tool(name="t", spec=spec, rate_limits=[RateLimit("1/hour")])
                assert made.call_tool("t").structured_content == {"n": 1}
                caches["default"].clear()
                if is_kept:
                    with pytest.raises(MCPError, match="too many requests"):
                        made.call_tool("t")
                else:
                    assert made.call_tool("t").structured_content == {"n": 1}
        caches.close_all()
    assert [record.getMessage() for record in caplog.records].count(CLEARED) == 1


CLEARED = (
    "LIMITER='cache:default': cache.clear() of 'default' empties the Redis database that sessions, messages and rate "
    "limits are in; name another one of its databases, such as 'cache:default/1'"
)


def test_what_is_no_place_is_said() -> None:
    assert place(None, "STORE") is None
    assert place("redis://one:1", "STORE") == RedisDatabase("redis://one:1", None)
    with override_settings(CACHES={"default": {"BACKEND": LOCAL}, "bare": {"BACKEND": REDIS, "LOCATION": "one:1"}}):
        for named, said in (
            ("cache:default", "is no Redis"),
            ("cache:lost", "there are default, bare"),
            ("cache:bare", "no redis://"),
        ):
            with pytest.raises(ImproperlyConfigured, match=said):
                place(named, "STORE")
        with setting(LIMITER="cache:default"), pytest.raises(ImproperlyConfigured, match="LIMITER='cache:default'"):
            server()
        down = setting(LIMITER="redis://127.0.0.1:1", ON_STORE_DOWN="cry")
        with down, pytest.raises(ImproperlyConfigured, match="'refuse' or 'memory'"):
            server()
    with setting(LIMITER="redis://127.0.0.1:1"), pytest.raises(ValueError, match="name"):
        MCPServer(auth=server().backend)


def test_servers_of_one_name_count_apart_under_other_prefixes(redis: RedisServer) -> None:
    """``STORE_PREFIX`` applies to the limiter, too, because two projects may share a Redis."""
    spec = ServiceSpec(service=lambda: {"n": 1}, permission_classes=[], atomic=False)
    for prefix, used in (("one:", False), ("two:", False), ("one:", True)):
        with setting(LIMITER=redis.url, STORE_PREFIX=prefix):
            made = server()
            made.register_service_tool(name="t", spec=spec, rate_limits=[RateLimit("1/hour")])
            if used:
                with pytest.raises(MCPError, match="too many requests"):
                    made.call_tool("t")
            else:
                assert made.call_tool("t").structured_content == {"n": 1}
