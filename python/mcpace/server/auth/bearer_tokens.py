"""Bearer tokens, and their verification by the author's own code.

The compiled part asks for the token, challenges callers without one, and publishes the resource's metadata (RFC 9728).
This module decides which tokens are valid.

Loaded only by servers that ask for tokens.

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
    """Results of the compiled part's verification of a token, and the members that they were derived from."""

    caller: str
    """The caller's key for sessions and rate limits. Callers of different issuers have different keys, even if their
    subjects are equal."""
    good_until: float | None
    """Seconds since 1970, including the tolerated difference between clocks."""
    subject: str | None
    client_id: str
    expires_at: int | None


class AccessToken(BaseModel):
    """A valid token and its content."""

    model_config = ConfigDict(defer_build=True)

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    """Seconds since 1970."""
    resource: str | None = None
    """The resource that it was issued for (RFC 8707)."""
    subject: str | None = None
    """The subject that it stands for."""
    claims: dict[str, Any] | None = None
    _found: Found | None = PrivateAttr(default=None)

    @property
    def __mcpace_verified__(self) -> tuple[str | None, float | None] | None:
        """The caller and the expiry that the compiled part found, unless a member that they depend on was changed. An
        author's verifier may pass a token of the compiled part back to it."""
        if self._found is None:
            return None
        is_same = (self.subject, self.client_id) == (self._found.subject, self._found.client_id)
        is_as_long = self.expires_at == self._found.expires_at
        return self._found.caller if is_same else None, self._found.good_until if is_as_long else None


@runtime_checkable
class TokenVerifier(Protocol):
    """Verifies tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """The content of the token; ``None`` if it is not valid."""
        ...


class AuthSettings(BaseModel):
    """Requires a token for calls, and names its issuers."""

    # Issuers are compared as text, so pydantic must not add a slash.
    model_config = ConfigDict(url_preserve_empty_path=True, defer_build=True)

    issuer_url: AnyHttpUrl
    """The authorization server."""
    authorization_servers: list[AnyHttpUrl] = []
    """Other issuers of tokens for this server. Clients see them after ``issuer_url``."""
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
    """The transport's settings, as keywords of ``_core.HttpOptions``."""
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
    # A class derived from one of mcpace's verifiers checks the resource as its base class does.
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
            # The compiled part warns about its own verifiers.
            logger.warning("%s", warning)
        return options | {"token_verifier": verifying(verifier, settings.resource_server_url if checks else None)}
    return options | {"token_verifier": native, "check_resource": checks}


def verifying(verifier: Any, resource: AnyHttpUrl | None) -> Callable[[str], Awaitable[Any]]:
    """A verifier that calls the author's, and then checks that the token is for ``resource``, unless that is ``None``.
    The compiled part checks the expiry.
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
    """Returns the settings. Raises the official SDK's errors for settings that contradict each other."""
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
    """The resource that a token is for, or its audiences if it has several (RFC 7519 §4.1.3)."""
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
