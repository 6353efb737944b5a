"""Support for tests of servers: in-memory clients for any principal, made-up tokens, and a frozen clock for rate
limits. Support for tests of clients: a server that answers from a recording.

A call of such a client passes dispatch, guards, validation and results, like a call over HTTP. Only the network and the
verification of tokens are left out. pytest finds the fixtures ``mcp_client``, ``mcp_recording`` and
``frozen_rate_limits`` automatically (:mod:`mcpace.testing.plugin`).

Design constraint: serving never needs this package. The package is quick to import, because pytest imports it with the
plugin, and it doesn't import pytest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpace.client import Client, SyncClient
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.bearer_tokens import AccessToken

__all__ = ["RateLimitClock", "connect", "connect_sync", "freeze_rate_limits", "serve_recording", "token"]


def connect(server: Any, *, principal: Any = None, **options: Any) -> Client:
    """A client of a server object: ``async with connect(server, principal=token("ada")) as client: …``.

    ``principal``: the caller, as the verifier would have returned it; ``None`` for a caller without a token.
    ``options`` are those of the client.
    """
    from mcpace.client import Client
    from mcpace.client.options import OnBehalf

    return Client(OnBehalf(server, principal), **options)


def connect_sync(server: Any, *, principal: Any = None, **options: Any) -> SyncClient:
    """A client of a server object for tests without an event loop: ``with connect_sync(server) as client: …``."""
    from mcpace.client import SyncClient
    from mcpace.client.options import OnBehalf

    return SyncClient(OnBehalf(server, principal), **options)


@contextmanager
def serve_recording(path: str | PathLike[str], *, match: str = "strict", time_scale: float = 0) -> Iterator[str]:
    """Serves a recording on loopback for the block; yields the URL.

    ``match``: ``strict``, or ``lenient``, which also takes the nearest recorded request of the same tool, prompt or
    resource. ``time_scale``: factor for the recorded times; 0 answers at once. Raises ``ValueError`` for another match,
    and ``mcpace._core.UsageProblem`` where the file can't be served.
    """
    from mcpace import _core

    if match not in ("strict", "lenient"):
        raise ValueError(f"match is strict or lenient, not {match!r}")
    recorded = _core.RecordedServer(fspath(path), lenient=match == "lenient", time_scale=time_scale)
    target = _core.Target(recorded)
    try:
        yield target.url
    finally:
        target.stop()


def token(subject: str = "tester", *, scopes: Any = (), client_id: str = "test-client", **claims: Any) -> AccessToken:
    """A token as a verifier would have returned it. ``claims`` are its additional claims."""
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
    """The clock of a server's rate limits."""

    def __init__(self, limiter: Any) -> None:
        self._limiter = limiter

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        self._limiter.advance(seconds)


def freeze_rate_limits(server: MCPServer[Any]) -> RateLimitClock:
    """Gives a server's rate limits a clock that moves only by :meth:`RateLimitClock.advance`.

    All counts begin at 0. Raises ``RuntimeError`` after the server's first guarded call.
    """
    from mcpace import _core

    limiter = _core.Limiter.memory(frozen=True)
    server.__mcpace_core__.use_limiter(limiter)
    return RateLimitClock(limiter)
