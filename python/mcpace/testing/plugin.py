"""pytest fixtures for servers, which pytest finds automatically where mcpace is installed.

Design constraint: every pytest run of an environment with mcpace imports this module, so the module imports only
pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mcpace.client import SyncClient
    from mcpace.testing import RateLimitClock


@pytest.fixture
def mcp_client() -> Iterator[Callable[..., SyncClient]]:
    """Connects to server objects: ``mcp_client(server, principal=token("ada"))`` returns a client that is closed at the
    end of the test."""
    from mcpace.testing import connect_sync

    with ExitStack() as stack:

        def begin(server: Any, *, principal: Any = None, **options: Any) -> SyncClient:
            return stack.enter_context(connect_sync(server, principal=principal, **options))

        yield begin


@pytest.fixture
def mcp_recording() -> Iterator[Callable[..., str]]:
    """Serves recordings: ``url = mcp_recording("search.jsonl.zst")`` returns the URL of a server that answers as the
    recorded one did, until the end of the test.

    ``match="lenient"`` also takes the nearest recorded request, and ``time_scale=1`` keeps the recorded times; without
    it, answers come at once.
    """
    from mcpace.testing import serve_recording

    with ExitStack() as stack:

        def begin(path: str | Path, *, match: str = "strict", time_scale: float = 0) -> str:
            return stack.enter_context(serve_recording(path, match=match, time_scale=time_scale))

        yield begin


@pytest.fixture
def frozen_rate_limits() -> Callable[[Any], RateLimitClock]:
    """Freezes the clock of a server's rate limits: ``clock = frozen_rate_limits(server)``, ``clock.advance(60)``."""
    from mcpace.testing import freeze_rate_limits

    return freeze_rate_limits
