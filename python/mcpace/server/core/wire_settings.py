"""Settings of results on the wire: how long clients may cache them, and the key that signs the state of rounds.

Design constraint: an option of the official SDK that the runtime does not have is refused here, at construction. The
message names the alternative.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mcpace.server.errors import UnsupportedOption, logger

CacheableMethod = Literal[
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
]
CACHEABLE: tuple[CacheableMethod, ...] = get_args(CacheableMethod)


@dataclass(frozen=True, slots=True)
class CacheHint:
    """How long a result stays fresh (``0``: not at all), and whether it may be shared between callers."""

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if self.ttl_ms < 0:
            raise ValueError(f"ttl_ms must be >= 0, got {self.ttl_ms}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope must be 'public' or 'private', got {self.scope!r}")


def cache_hint(hints: Mapping[Any, Any] | None) -> CacheHint:
    """The one hint that the runtime sends with all results: the most cautious of those given."""
    if not hints:
        return CacheHint()
    unknown = sorted(repr(method) for method in hints if method not in CACHEABLE)
    if unknown:
        raise ValueError(f"cache_hints keys must be cacheable methods (see CacheableMethod); got: {', '.join(unknown)}")
    given = {method: _checked_hint(method, hint) for method, hint in hints.items()}
    different = {given.get(method, CacheHint()) for method in CACHEABLE}
    if len(different) == 1:
        return different.pop()
    is_public = all(hint.scope == "public" for hint in different)
    least = CacheHint(min(hint.ttl_ms for hint in different), "public" if is_public else "private")
    logger.warning(
        "cache_hints: mcpace sends one hint with all of %s, here the most cautious one: ttl_ms=%d, %s",
        ", ".join(CACHEABLE),
        least.ttl_ms,
        least.scope,
    )
    return least


def _checked_hint(method: str, hint: Any) -> CacheHint:
    if not (hasattr(hint, "ttl_ms") and hasattr(hint, "scope")):
        raise TypeError(f"cache_hints[{method!r}] must be a CacheHint, got {type(hint).__name__}")
    return CacheHint(hint.ttl_ms, hint.scope)


class RequestStateSecurity:
    """The key that signs the state which a round of questions gives to the client; all processes share it. Without it
    each process has a random key, and refuses state that another process signed."""

    def __init__(
        self,
        *,
        keys: Sequence[bytes | bytearray | str] | None = None,
        codec: Any = None,
        ttl: float | None = None,
        bind_principal: Any = ...,
        audience: str | None = None,
    ) -> None:
        refused = [
            name
            for name, given in (
                ("codec", codec is not None),
                ("ttl", ttl is not None),
                ("bind_principal", bind_principal is not ...),
                ("audience", audience is not None),
            )
            if given
        ]
        if refused:
            raise UnsupportedOption(
                f"RequestStateSecurity({', '.join(refused)}=…): the runtime signs state itself, binds it to the "
                "request and its caller and lets it expire; give keys= only"
            )
        if not keys:
            raise ValueError("RequestStateSecurity takes keys=[secret]")
        if len(keys) > 1:
            raise UnsupportedOption("RequestStateSecurity(keys=…): one key is taken; rotate by restarting with another")
        secret = keys[0].encode() if isinstance(keys[0], str) else bytes(keys[0])
        if len(secret) < 32:
            raise ValueError(
                f"request-state keys must be at least 32 bytes of secret randomness; keys[0] is {len(secret)} bytes. "
                'Generate one with: python -c "import secrets; print(secrets.token_hex(32))"'
            )
        self._secret = secret

    def key(self, audience: str) -> bytes:
        """The 32 bytes that sign a server's state. Servers that share the secret have different keys."""
        return hashlib.blake2b(audience.encode(), key=hashlib.sha256(self._secret).digest(), digest_size=32).digest()

    def __repr__(self) -> str:
        return "RequestStateSecurity(keys=[…])"


def state_key(security: Any, name: str | None) -> bytes | None:
    """The key that signs a server's state; ``None`` for a random one."""
    if security is None:
        return None
    if not isinstance(security, RequestStateSecurity):
        raise UnsupportedOption(
            f"request_state_security: {type(security).__module__}.{type(security).__name__} is another SDK's; use "
            "mcpace.RequestStateSecurity"
        )
    if not name:
        raise ValueError(
            "request_state_security is configured but this server has no name: servers that share a key are told "
            'apart by it. Name the server: MCPServer("my-service", ...)'
        )
    return security.key(name)
