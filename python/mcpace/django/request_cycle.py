"""Django's request cycle around a call, in the thread that runs it.

A call through the runtime runs on a thread that belongs to none of Django's requests. This module does between calls
what Django does between requests: it closes connections that are too old or broken, has a kept connection
health-checked before its next use (``CONN_MAX_AGE``, ``CONN_HEALTH_CHECKS``), closes caches and clears query logs.

The caller of an in-process call (a view, a command, a test) has a cycle already, so none is added
(:func:`within_callers_cycle`).

Design constraint: a call that touches no database pays a microsecond. Where only Django's own receivers listen to
``request_started`` and ``request_finished``, their work is done without sending the signals, and a thread without
connections isn't searched for them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.cache import caches, close_caches
from django.core.cache.backends.base import BaseCache
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections, reset_queries
from django.dispatch import Signal
from django.utils.module_loading import import_string


class Cycle:
    """The sender of the signals, as Django's handlers are for its own requests."""


class _CacheConnections:
    """Whether any cache of the project has connections to close, which most caches have not."""

    settings: Any = None
    has_connections = True

    def inspect_caches(self) -> None:
        kinds = [import_string(one["BACKEND"]) for one in caches.settings.values()]
        self.has_connections = any(kind.close is not BaseCache.close for kind in kinds)
        self.settings = caches.settings


_cache_connections = _CacheConnections()
_is_callers: ContextVar[bool] = ContextVar("mcpace_django_cycle", default=False)
# The keys under which signals keep receivers of any sender.
_STARTED = {(id(one), id(None)) for one in (reset_queries, close_old_connections)}
_FINISHED = {(id(one), id(None)) for one in (close_caches, close_old_connections)}


_RESETS = {(id(reset_urlconf), id(None))}


class _Listeners:
    """The receivers of a signal, compared with Django's own only when they have changed."""

    def __init__(self, signal: Signal, own: set[tuple[int, int]]) -> None:
        self._signal = signal
        self._own = own
        self._known: list[Any] = []
        self._are_djangos = False

    def are_djangos(self) -> bool:
        """Whether all receivers are Django's own. The receiver that resets the URLconf is ignored, because no call
        sets a URLconf."""
        now = self._signal.receivers
        if now != self._known:
            found = {one[0] for one in now}
            self._are_djangos = found == self._own or found - _RESETS == self._own
            self._known = list(now)
        return self._are_djangos


_started = _Listeners(request_started, _STARTED)
_finished = _Listeners(request_finished, _FINISHED)


def _may_have_connections() -> bool:
    """Whether this thread may have database connections.

    Iterating over the connections takes longer than the rest of the cycle, whereas an empty storage is seen at once.
    Where Django's storage isn't of the expected type, the thread may have connections.
    """
    try:
        storage = connections._connections._storage
    except AttributeError:
        return True
    return type(storage) is not threading.local or bool(storage.__dict__)


@contextmanager
def within_callers_cycle() -> Iterator[None]:
    """Leaves the connections to the caller within the block: no cycle is added."""
    token = _is_callers.set(True)
    try:
        yield
    finally:
        _is_callers.reset(token)


def is_in_callers_cycle() -> bool:
    """Whether the caller has a request cycle of its own."""
    return _is_callers.get()


def has_listeners() -> bool:
    """Whether the project has receivers of its own for the signals of a request."""
    return not (_started.are_djangos() and _finished.are_djangos())


def begin() -> None:
    """Begins the cycle, before a call."""
    if _is_callers.get():
        return
    if not _started.are_djangos():
        request_started.send(sender=Cycle)
        return
    if not _may_have_connections():
        return
    for connection in connections.all(initialized_only=True):
        connection.queries_log.clear()
        connection.close_if_unusable_or_obsolete()


def end() -> None:
    """Ends the cycle, after a call."""
    if _is_callers.get():
        return
    if not _finished.are_djangos():
        request_finished.send(sender=Cycle)
        return
    if caches.settings is not _cache_connections.settings:
        _cache_connections.inspect_caches()
    if _cache_connections.has_connections:
        close_caches()
    if not _may_have_connections():
        return
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def end_with_thread() -> None:
    """Ends the cycle of a call whose thread ends, too. All connections are closed, because nothing could use them
    again."""
    try:
        end()
    finally:
        connections.close_all()
