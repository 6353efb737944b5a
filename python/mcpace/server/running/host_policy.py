"""The ``Host`` and ``Origin`` headers that an ASGI application accepts, by the official SDK's rules and statuses.

The runtime's own rules accept loopback names always, as a server on a port needs them. An application behind a server
of its author's choice accepts exactly what its ``transport_security`` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpace.server.errors import logger

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """Allowed hosts and origins. An entry that ends with ``:*`` accepts any port."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The status and the text of a refusal; ``None`` where the request is accepted."""
        given: dict[bytes, list[str]] = {b"host": [], b"origin": []}
        for name, value in headers:
            if name.lower() in given:
                given[name.lower()].append(value.decode("latin-1"))
        if not (len(given[b"host"]) == 1 and _accepts(self.hosts, given[b"host"][0])):
            logger.warning("Invalid Host header: %r", given[b"host"])
            return 421, "Invalid Host header"
        if given[b"origin"] and not (len(given[b"origin"]) == 1 and _accepts(self.origins, given[b"origin"][0])):
            logger.warning("Invalid Origin header: %r", given[b"origin"])
            return 403, "Invalid Origin header"
        return None


def policy_of(security: Any, host: str) -> HostPolicy | None:
    """The policy of a ``TransportSecuritySettings`` or a mapping of its members; ``None`` accepts everything.

    Without settings an application of a loopback ``host`` accepts loopback names, any other application everything.
    """
    if security is None:
        if host not in _LOOPBACK_HOSTS:
            return None
        names = tuple(entry for name in _LOOPBACK for entry in (name, f"{name}:*"))
        return HostPolicy(names, tuple(f"{scheme}://{name}" for scheme in ("http", "https") for name in names))
    members = security if isinstance(security, Mapping) else security.model_dump()
    if not members.get("enable_dns_rebinding_protection", True):
        return None
    return HostPolicy(tuple(members.get("allowed_hosts", ())), tuple(members.get("allowed_origins", ())))


def _accepts(allowed: Iterable[str], given: str) -> bool:
    for entry in allowed:
        if given == entry:
            return True
        if entry.endswith(":*"):
            port = given.removeprefix(entry[:-1])
            if port != given and port.isascii() and port.isdigit():
                return True
    return False
