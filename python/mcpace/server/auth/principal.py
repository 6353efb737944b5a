"""The principal of a call: its token, kept in a context variable of the call, and the mark of trusted calls."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from mcpace.server.sdk_compat.shared_types import remember_principal

_principal: ContextVar[Any] = ContextVar("mcpace_principal", default=None)


def get_access_token() -> Any:
    """The token of the current call, as the verifier returned it; ``None`` if calls need no token."""
    return _principal.get()


def remember(principal: Any) -> None:
    """Stores a call's token in the context variable that :func:`get_access_token` reads."""
    _principal.set(principal)
    remember_principal(principal)


class Trusted:
    """The principal of the server's own calls, to which no guard applies."""

    def __repr__(self) -> str:
        return "TRUSTED"


TRUSTED = Trusted()


def checked_principal(principal: Any) -> Any:
    """Returns the principal of a call within the process. Raises ``TypeError`` for an object that is no token."""
    if principal is None or (hasattr(principal, "client_id") and not isinstance(principal, type)):
        return principal
    raise TypeError(
        f"principal is an AccessToken, or None for a caller without, not {principal!r}; "
        "for tests, mcpace.testing.token('ada') makes one"
    )
