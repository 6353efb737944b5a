"""Who may call: bearer tokens, verified by the author's own code.

The compiled part asks for the token, challenges callers without one, and publishes the resource's metadata (RFC 9728).
Here is what makes a token good.

Loaded by servers that want tokens alone.

Deliberately absent: issuing tokens. An authorization server is a program of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from pydantic import AnyHttpUrl, BaseModel, ConfigDict, PrivateAttr, model_validator

from mcpace.server.errors import UnsupportedOption, logger


@dataclass(frozen=True, slots=True)
class Found:
    """What the compiled part knows of a token beside what it shows, and what of."""

    caller: str
    """Whom sessions and rate limits know: callers of two issuers never have one name, whatever their subjects."""
    good_until: float | None
    """Seconds since 1970; with what clocks may differ."""
    subject: str | None
    client_id: str
    expires_at: int | None


class AccessToken(BaseModel):
    """A token that was found good, and what it says."""

    model_config = ConfigDict(defer_build=True)

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    """Seconds since 1970."""
    resource: str | None = None
    """What it was issued for (RFC 8707)."""
    subject: str | None = None
    """Who it stands for."""
    claims: dict[str, Any] | None = None
    _found: Found | None = PrivateAttr(default=None)

    @property
    def __mcpace_verified__(self) -> tuple[str | None, float | None] | None:
        """For the compiled part, which may get it back from somebody's own verifier: what it found, where nobody has
        changed what that was read from."""
        if self._found is None:
            return None
        is_same = (self.subject, self.client_id) == (self._found.subject, self._found.client_id)
        is_as_long = self.expires_at == self._found.expires_at
        return self._found.caller if is_same else None, self._found.good_until if is_as_long else None


@runtime_checkable
class TokenVerifier(Protocol):
    """Tells whether a token is good."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """What the token says; ``None`` where it is not good."""
        ...


class AuthSettings(BaseModel):
    """That calls need a token, and from whom."""

    # Issuers are compared as they are written: no slash may be added.
    model_config = ConfigDict(url_preserve_empty_path=True, defer_build=True)

    issuer_url: AnyHttpUrl
    """The authorization server."""
    authorization_servers: list[AnyHttpUrl] = []
    """Others that issue tokens for this server; clients are told of them after ``issuer_url``."""
    resource_server_url: AnyHttpUrl | None
    """This server as clients see it, such as ``https://mcp.example/mcp``."""
    required_scopes: list[str] | None = None
    validate_token_resource: bool | None = None
    """Takes only tokens whose ``resource`` is ``resource_server_url``; of ``JWTVerifier`` and its kind, those that
    name it as their audience. If not given: no, but for a ``JWTVerifier`` without an ``audience``."""
    service_documentation_url: AnyHttpUrl | None = None
    client_registration_options: Any = None
    revocation_options: Any = None
    identity_assertion_enabled: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.validate_token_resource and self.resource_server_url is None:
            raise ValueError("validate_token_resource requires resource_server_url")
        issuing = (self.client_registration_options, self.revocation_options, self.identity_assertion_enabled)
        if any(issuing):
            raise UnsupportedOption(
                "mcpace issues no tokens, so client registration, revocation and identity assertions are the "
                "authorization server's: leave these settings out, and name that server in issuer_url"
            )
        return self


def http_options(settings: AuthSettings, verifier: Any) -> dict[str, Any]:
    """What the transport is to know, as keywords of ``_core.HttpOptions``."""
    if settings.resource_server_url is None:
        raise UnsupportedOption(
            "auth without resource_server_url: clients learn from it where to get a token; set it to this server's "
            "URL as they see it, such as https://mcp.example/mcp"
        )
    issuers = [str(one) for one in (settings.issuer_url, *settings.authorization_servers)]
    options: dict[str, Any] = {
        "resource": str(settings.resource_server_url),
        "authorization_servers": list(dict.fromkeys(issuers)),
    }
    # A class derived from one of ours asks for what that would have asked for.
    scopes = [*(settings.required_scopes or ()), *(getattr(verifier, "required_scopes", None) or ())]
    options["required_scopes"] = list(dict.fromkeys(scopes))
    checks = settings.validate_token_resource
    checks = bool(getattr(verifier, "wants_resource", False)) if checks is None else checks
    if settings.validate_token_resource is None and getattr(verifier, "takes_any_audience", False):
        logger.warning(
            "Introspected tokens are held to no audience: one that was issued for another service of the same issuer "
            "opens this server. Give the verifier audience=…, or AuthSettings(validate_token_resource=True); "
            "False says that it is meant"
        )
    native = getattr(verifier, "__mcpace_verifier__", lambda: None)()
    if native is None:
        if warning := getattr(verifier, "warning", None):
            # The compiled part says it of its own.
            logger.warning("%s", warning)
        return options | {"token_verifier": verifying(verifier, settings.resource_server_url if checks else None)}
    return options | {"token_verifier": native, "check_resource": checks}


def verifying(verifier: Any, resource: AnyHttpUrl | None) -> Callable[[str], Awaitable[Any]]:
    """The author's verifier, and what a token is for: ``resource``, unless that is ``None``.

    (Whether it has expired is looked at where it is taken.)
    """

    async def verify(token: str) -> Any:
        access = await verifier.verify_token(token)
        if access is None:
            return None
        if resource is not None and not any(_is_same(one, resource) for one in _meant_for(access)):
            logger.warning("Bearer token resource %r is not %s", access.resource, resource)
            return None
        return access

    return verify


def check(auth: Any, token_verifier: Any, auth_server_provider: Any) -> AuthSettings | None:
    """The settings, if any. Raises where they don't fit together, in the official SDK's words."""
    if auth_server_provider is not None:
        raise UnsupportedOption(
            "auth_server_provider: mcpace issues no tokens. Run the authorization server as a program of its own, and "
            "give token_verifier, which asks it (introspection) or knows its keys (JWT)"
        )
    if auth is None:
        if token_verifier is not None:
            raise ValueError("Cannot specify auth_server_provider or token_verifier without auth settings")
        return None
    if token_verifier is None:
        raise ValueError("Must specify either auth_server_provider or token_verifier when auth is enabled")
    given = auth if isinstance(auth, AuthSettings | dict) else auth.model_dump()
    return AuthSettings.model_validate(given)


def _meant_for(access: Any) -> list[str]:
    """The resource; of a token for several, its audiences (RFC 7519 §4.1.3)."""
    if access.resource is not None:
        return [access.resource]
    audiences = (getattr(access, "claims", None) or {}).get("aud")
    return [one for one in audiences if isinstance(one, str)] if isinstance(audiences, list) else []


def _is_same(resource: str, wanted: AnyHttpUrl) -> bool:
    try:
        given = AnyHttpUrl(resource)
    except ValueError:
        return False
    return str(given).rstrip("/") == str(AnyHttpUrl(str(wanted))).rstrip("/")
