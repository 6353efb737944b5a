"""pytest's fixtures for servers. pytest finds them by itself where mcpace is installed.

Design constraint: imported by every pytest run of an environment that has mcpace, so it imports pytest and nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mcpace.client import SyncClient
    from mcpace.testing import RateLimitClock


@pytest.fixture
def mcp_client() -> Iterator[Callable[..., SyncClient]]:
    """Connects to server objects: ``mcp_client(server, principal=token("ada"))`` is a client until the test is over."""
    from mcpace.testing import connect_sync

    with ExitStack() as stack:

        def begin(server: Any, *, principal: Any = None, **options: Any) -> SyncClient:
            return stack.enter_context(connect_sync(server, principal=principal, **options))

        yield begin


@pytest.fixture
def frozen_rate_limits() -> Callable[[Any], RateLimitClock]:
    """Stops the clock of a server's rate limits: ``clock = frozen_rate_limits(server)``, ``clock.advance(60)``."""
    from mcpace.testing import freeze_rate_limits

    return freeze_rate_limits
