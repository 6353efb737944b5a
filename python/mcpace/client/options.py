"""The options of a client, in the form that the compiled part reads.

Design constraint: pure functions; the JSON has the names of ``crates/py/src/caller/settings.rs``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpace import _core
from mcpace.server.auth.principal import checked_principal
from mcpace.types import wire

if TYPE_CHECKING:
    from mcpace.server.running.prepared import Prepared

# Environment variables that a started server inherits by default, as in the official SDK. None contains secrets.
_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")


@dataclass
class StdioServerParameters:
    """A program to start as a server. No shell is involved."""

    command: str
    args: list[str] = field(default_factory=list)
    env: Mapping[str, str] | None = None
    """Environment variables, in addition to a few of this process (``PATH``, ``HOME``, …)."""
    cwd: str | Path | None = None


@dataclass
class OAuth:
    """Authorization by OAuth 2.1, for servers that require it."""

    client_id: str | None = None
    """Id of the client at the authorization server; ``None`` registers a client, where the server permits that."""
    client_secret: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    """URL (``https``) of the client's metadata document, which serves as its id."""
    scope: str | None = None
    """Requested scopes, separated by spaces; ``None`` requests those that the server names."""
    open: Callable[[str], Any] | None = None
    """Shows the user the page for consent; ``None`` opens the browser."""
    follow: bool = False
    """Whether the client itself requests the page for consent, for test servers that consent automatically."""
    port: int = 0
    """Port of the callback on this machine; 0 takes a free port."""
    timeout: float = 300.0
    """Maximum time for the user's consent, in seconds."""
    client_credentials: bool = False
    """Whether the client authorizes without a user, by its secret or by ``private_key``."""
    private_key: str | None = field(default=None, repr=False)
    """A PEM key (ES256) that signs the client's assertions (``private_key_jwt``)."""
    assertion: str | None = field(default=None, repr=False)
    """A JWT that the platform issued to this workload, for authorization without a user (workload identity
    federation)."""
    idp_id_token: str | None = field(default=None, repr=False)
    """The user's ID token: the identity provider exchanges it for an assertion (enterprise-managed authorization)."""
    idp_token_endpoint: str | None = None
    """The identity provider's token endpoint, an ``https`` URL."""
    idp_client_id: str | None = None
    """The client id at the identity provider."""

    def settings(self) -> dict[str, Any]:
        """The options as the compiled part reads them."""
        told = {
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "client_metadata_url": self.client_metadata_url,
            "scope": self.scope,
            "follow": self.follow,
            "port": self.port,
            "consent_time_s": self.timeout,
            "client_credentials": self.client_credentials,
            "private_key": self.private_key,
            "assertion": self.assertion,
            "idp_id_token": self.idp_id_token,
            "idp_token_endpoint": self.idp_token_endpoint,
            "idp_client_id": self.idp_client_id,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class ServerLocation:
    """The location of a server, in the form that the compiled part accepts."""

    target: Any
    environment: list[tuple[str, str]] | None = None
    folder: str | None = None
    prepared: Prepared | None = None
    """The prepared server, for a server object of this process."""
    principal: Any = None
    """The caller that a client of a server object acts for."""


@dataclass(frozen=True)
class OnBehalf:
    """A server object with the principal of its client, for tests in which no token is sent or verified."""

    server: Any
    principal: Any
    """An ``AccessToken``; ``None`` for a client without a token."""


def place(server: Any) -> ServerLocation:
    """The location that a user named by a URL, a command, parameters of a program, or a server object."""
    if isinstance(server, str):
        return ServerLocation(server)
    if isinstance(server, _core.Server):
        return ServerLocation(server)
    if isinstance(server, list | tuple):
        return ServerLocation([str(word) for word in server], _environment({}))
    if isinstance(server, OnBehalf):
        binding = getattr(server.server, "__mcpace_core__", None)
        if binding is not None:
            binding.trust_local_principals()
        found = place(server.server)
        if found.prepared is None and not isinstance(found.target, _core.Server):
            raise TypeError(f"principal= needs a server object of mcpace, not {server.server!r}")
        return replace(found, principal=checked_principal(server.principal))
    if hasattr(server, "__mcpace__"):
        prepared = server.__mcpace__()
        return ServerLocation(prepared.core, prepared=prepared)
    if hasattr(server, "command") and hasattr(server, "args"):
        folder = None if server.cwd is None else str(server.cwd)
        return ServerLocation([server.command, *server.args], _environment(server.env or {}), folder)
    raise TypeError(
        "a client connects to a URL, a command (a list), StdioServerParameters or a server of mcpace, "
        f"not to {server!r}"
    )


def _environment(named: Mapping[str, str]) -> list[tuple[str, str]]:
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return list((kept | dict(named)).items())


def settings(told: Mapping[str, Any]) -> bytes:
    """The options as JSON, without those that are ``None``."""
    return json.dumps({name: wire(value) for name, value in told.items() if value is not None}).encode()


def page_opener(oauth: OAuth | None) -> Callable[[str], Any] | None:
    """The function that shows the user the page for consent."""
    if oauth is None or oauth.follow:
        return None
    if oauth.open is not None:
        return oauth.open
    import webbrowser

    return webbrowser.open
