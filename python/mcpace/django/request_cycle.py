"""Django's request cycle around a call, in the thread that runs it.

A call through the runtime runs on a thread that no request of Django's knows. What Django does between requests is done
here between calls: connections that are too old or broken are closed, and one that is kept is health-checked before it
is used again (``CONN_MAX_AGE``, ``CONN_HEALTH_CHECKS``); caches are let go; logs of queries are emptied.

A call within the process is somebody's own who has a cycle already (a view, a command, a test): none is added
(:func:`callers_own`).

Design constraint: a call that touches no database pays a microsecond. Where nobody but Django listens to
``request_started`` and ``request_finished``, what Django's own receivers do is done without sending them, and a thread
that has no connections isn't searched for them.
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


class _Known:
    """Whether any cache of the project has connections to be let go: most have not."""

    settings: Any = None
    has_connections = True

    def look(self) -> None:
        kinds = [import_string(one["BACKEND"]) for one in caches.settings.values()]
        self.has_connections = any(kind.close is not BaseCache.close for kind in kinds)
        self.settings = caches.settings


_known = _Known()
_is_callers: ContextVar[bool] = ContextVar("mcpace_django_cycle", default=False)
# As signals know receivers of any sender.
_STARTED = {(id(one), id(None)) for one in (reset_queries, close_old_connections)}
_FINISHED = {(id(one), id(None)) for one in (close_caches, close_old_connections)}


_RESETS = {(id(reset_urlconf), id(None))}


class _Listeners:
    """Who hears a signal; looked at anew only where there are others than before."""

    def __init__(self, signal: Signal, own: set[tuple[int, int]]) -> None:
        self._signal = signal
        self._own = own
        self._known: list[Any] = []
        self._are_djangos = False

    def are_djangos(self) -> bool:
        """Whether Django's own receivers are all there are. (What resets the URLconf is no call's business.)"""
        now = self._signal.receivers
        if now != self._known:
            found = {one[0] for one in now}
            self._are_djangos = found == self._own or found - _RESETS == self._own
            self._known = list(now)
        return self._are_djangos


_started = _Listeners(request_started, _STARTED)
_finished = _Listeners(request_finished, _FINISHED)


def _may_have_connections() -> bool:
    """Whether this thread may have any. Looking for them takes longer than the rest of this; that there is nothing at
    all in the place where Django keeps them is seen at once. Where that place isn't the one known, there may be."""
    try:
        storage = connections._connections._storage
    except AttributeError:
        return True
    return type(storage) is not threading.local or bool(storage.__dict__)


@contextmanager
def callers_own() -> Iterator[None]:
    """Within the block whoever calls looks after the connections."""
    token = _is_callers.set(True)
    try:
        yield
    finally:
        _is_callers.reset(token)


def is_callers_own() -> bool:
    """Whether the cycle is somebody else's business."""
    return _is_callers.get()


def is_listened_to() -> bool:
    """Whether somebody but Django wants to hear of calls."""
    return not (_started.are_djangos() and _finished.are_djangos())


def begin() -> None:
    """Before a call."""
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
    """After it."""
    if _is_callers.get():
        return
    if not _finished.are_djangos():
        request_finished.send(sender=Cycle)
        return
    if caches.settings is not _known.settings:
        _known.look()
    if _known.has_connections:
        close_caches()
    if not _may_have_connections():
        return
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def end_with_thread() -> None:
    """After a call whose thread ends with it: a connection that is kept there could never be used again."""
    try:
        end()
    finally:
        connections.close_all()
