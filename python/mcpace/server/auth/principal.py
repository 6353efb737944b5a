"""Who a call is for: the token of the current call, put among its context variables by the server, found by whoever
asks; and what stands where nobody is named.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from mcpace.server.sdk_compat.shared_types import remember_principal

_principal: ContextVar[Any] = ContextVar("mcpace_principal", default=None)


def get_access_token() -> Any:
    """The token of the current call, as the verifier returned it; ``None`` where calls need none."""
    return _principal.get()


def remember(principal: Any) -> None:
    """Puts a call's token where :func:`get_access_token` finds it: among the call's own context variables."""
    _principal.set(principal)
    remember_principal(principal)


class Trusted:
    """Stands where nobody is named: the server's own call, which no guard looks at."""

    def __repr__(self) -> str:
        return "TRUSTED"


TRUSTED = Trusted()


def checked(principal: Any) -> Any:
    """On whose behalf a call within the process is made. Raises ``TypeError`` for what is no token."""
    if principal is None or (hasattr(principal, "client_id") and not isinstance(principal, type)):
        return principal
    raise TypeError(
        f"principal is an AccessToken, or None for a caller without, not {principal!r}; "
        "for tests, mcpace.testing.token('ada') makes one"
    )
