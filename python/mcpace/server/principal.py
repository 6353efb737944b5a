"""The token of the current call: put among the call's context variables by the server, found by whoever asks."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_principal: ContextVar[Any] = ContextVar("mcpace_principal", default=None)


def get_access_token() -> Any:
    """The token of the current call, as the verifier returned it; ``None`` where calls need none."""
    return _principal.get()


def remember(principal: Any) -> None:
    """Puts a call's token where :func:`get_access_token` finds it: among the call's own context variables."""
    _principal.set(principal)
