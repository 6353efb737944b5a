"""For tests of servers: clients in memory that speak on anybody's behalf, tokens made up, a clock of rate limits that
stands still.

Everything here reaches the server by the same road as a client over HTTP: dispatch, guards, validation, results. Only
the network and the verifying of tokens are left out. With pytest, the fixtures ``mcp_client`` and
``frozen_rate_limits`` are there by themselves (:mod:`mcpace.testing.plugin`).

Design constraint: nothing here is needed to serve. Light to import, for pytest imports it with the plugin; nothing of
pytest's is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpace.client import Client, SyncClient
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.bearer_tokens import AccessToken

__all__ = ["RateLimitClock", "connect", "connect_sync", "freeze_rate_limits", "token"]


def connect(server: Any, *, principal: Any = None, **options: Any) -> Client:
    """A client of a server object: ``async with connect(server, principal=token("ada")) as client: …``.

    ``principal``: on whose behalf it speaks, as the verifier would have returned it; ``None`` for a caller without a
    token. ``options`` are the client's.
    """
    from mcpace.client import Client
    from mcpace.client.options import OnBehalf

    return Client(OnBehalf(server, principal), **options)


def connect_sync(server: Any, *, principal: Any = None, **options: Any) -> SyncClient:
    """The same for tests without an event loop: ``with connect_sync(server) as client: …``."""
    from mcpace.client import SyncClient
    from mcpace.client.options import OnBehalf

    return SyncClient(OnBehalf(server, principal), **options)


def token(subject: str = "tester", *, scopes: Any = (), client_id: str = "test-client", **claims: Any) -> AccessToken:
    """A token as a verifier would have returned it. ``claims`` are what else it says."""
    from mcpace.server.auth.bearer_tokens import AccessToken

    granted = [scopes] if isinstance(scopes, str) else list(scopes)
    return AccessToken(
        token=f"token-of-{subject}",
        client_id=client_id,
        subject=subject,
        scopes=granted,
        claims={"sub": subject, **claims},
    )


class RateLimitClock:
    """The time by which a server's rate limits count."""

    def __init__(self, limiter: Any) -> None:
        self._limiter = limiter

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._limiter.advance(seconds)


def freeze_rate_limits(server: MCPServer[Any]) -> RateLimitClock:
    """Has a server's rate limits count by a clock that stands still until it is moved.

    All counts begin at nothing. Before the server's first guarded call; raises ``RuntimeError`` later.
    """
    from mcpace import _core

    limiter = _core.Limiter.memory(frozen=True)
    server.__mcpace_core__.use_limiter(limiter)
    return RateLimitClock(limiter)
