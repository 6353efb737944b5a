"""Fixtures for tests of several files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.redis_server import RedisServer

# Some images set this variable. Every start of Python then compiles its modules again, which is slow, and which
# `mcpace check` reports. A test of that report sets the variable itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real one of the test's own, empty."""
    from support.redis_server import RedisServer  # it brings the lab, which most tests do without

    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def django_queries() -> Iterator[list[str]]:
    """Django's queries to its database, as they are sent."""
    from django.db import connection  # with a project that the test has set up

    found: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        found.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield found
