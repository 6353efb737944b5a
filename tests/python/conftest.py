"""What tests of several files stand on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from quiet import Held
    from redis_server import RedisServer


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real one of the test's own, empty."""
    from redis_server import RedisServer  # it brings the lab, which most tests do without

    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def django_queries() -> Iterator[list[str]]:
    """What Django asks its database for, as it is asked."""
    from django.db import connection  # with a project that the test has set up

    found: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        found.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield found


@pytest.fixture(scope="session")
def five_minutes() -> Iterator[dict[str, Held]]:
    """Silent streams of several releases' clients, the controls' first. Whoever asks early has them age meanwhile."""
    from quiet import held

    with ExitStack() as stack:
        yield {
            # The recorder ends what is silent for a quarter of an hour, which a whole proof may take.
            "go": stack.enter_context(held("go@1.8.0", comments_s=400)),
            "typescript, with comments": stack.enter_context(held("typescript@1.32.2", comments_s=15)),
            "typescript": stack.enter_context(held("typescript@1.32.2")),
            "python": stack.enter_context(held("python@1.30.0")),
        }
