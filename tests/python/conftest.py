"""What tests of several files stand on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redis_server import RedisServer


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real one of the test's own, empty."""
    from redis_server import RedisServer  # it brings the lab, which most tests do without

    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server
