"""Django's request cycle around calls: the connections and signals that it checks, and the cases that skip the
checks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import connection, connections

from mcpace.django import request_cycle


def in_a_thread(work: Callable[[], Any]) -> Any:
    """The value of `work`, called in a thread without connections."""
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(work()))
    thread.start()
    thread.join(30)
    [one] = given
    return one


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A list with an entry for each search for connections."""
    lines: list[str] = []
    all_of_them = connections.all

    def counted(initialized_only: bool = False) -> list[Any]:
        lines.append("looked")
        return all_of_them(initialized_only)

    monkeypatch.setattr(connections, "all", counted)
    yield lines


def test_where_a_thread_has_no_connection_nobody_looks_for_any(looked: list[str]) -> None:
    def calls() -> list[int]:
        counts = []
        for has_used in (False, True, False):
            request_cycle.begin()
            if has_used:
                connection.ensure_connection()
            request_cycle.end()
            counts.append(len(looked))
        return counts

    # From then on the thread has a connection, open or closed.
    assert in_a_thread(calls) == [0, 1, 3]


def test_a_connection_that_another_thread_lent_is_looked_after() -> None:
    lent = connections.create_connection("default")
    lent.inc_thread_sharing()

    def call() -> tuple[bool, bool]:
        request_cycle.begin()
        connections["default"] = lent
        connection.ensure_connection()
        was_open = lent.connection is not None
        request_cycle.end()
        return was_open, lent.connection is None

    assert in_a_thread(call) == (True, True)


def test_where_django_keeps_connections_elsewhere_they_are_looked_for(
    looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere:
        """Another kind of storage, which a later asgiref might have."""

    def call() -> int:
        request_cycle.begin()
        request_cycle.end()
        return len(looked)

    monkeypatch.setattr(connections, "_connections", Elsewhere())
    assert in_a_thread(call) == 2


def test_a_connection_that_was_left_is_looked_after_by_the_next_call() -> None:
    def calls() -> tuple[bool, bool]:
        request_cycle.begin()
        request_cycle.end()
        request_cycle.begin()
        connection.ensure_connection()
        # Kept because of its age, as with CONN_MAX_AGE.
        connection.close_at = None
        request_cycle.end()
        was_kept = connection.connection is not None
        connection.close_at = 0
        request_cycle.begin()
        return was_kept, connection.connection is None

    assert in_a_thread(calls) == (True, True)


def test_who_begins_to_listen_is_heard_from_then_on(looked: list[str]) -> None:
    heard: list[str] = []

    def begun(**_: Any) -> None:
        heard.append("begun")

    def ended(**_: Any) -> None:
        heard.append("ended")

    def call() -> bool:
        request_cycle.begin()
        request_cycle.end()
        return True

    assert in_a_thread(call) and not heard
    request_started.connect(begun)
    request_finished.connect(ended)
    try:
        assert request_cycle.has_listeners()
        assert in_a_thread(call) and heard == ["begun", "ended"]
    finally:
        request_started.disconnect(begun)
        request_finished.disconnect(ended)
    assert not request_cycle.has_listeners()
    assert in_a_thread(call) and len(heard) == 2
