"""Authentication backends, which identify the caller of a request.

A backend has ``verify_token``, as any token verifier of the runtime; the principal that it returns has a ``user``
beside the scopes. The runtime itself sends the challenge to callers without a token, and serves the metadata that the
challenge points at (RFC 9728).

Design constraint: a token is looked up in a thread, within Django's request cycle, never on the event loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist
from django.http import HttpRequest
from django.utils.module_loading import import_string

from mcpace.django import request_cycle
from mcpace.django.conf import setting
from mcpace.server.auth.bearer_tokens import AuthSettings
from mcpace.server.errors import logger


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller that a token identifies."""

    user: Any
    """Django's user; ``None`` where the token identifies a client without a user."""
    scopes: tuple[str, ...] = ()
    client_id: str = ""
    subject: str | None = None
    """The key by which sessions and rate limits identify the caller. A user and a client never share a key:
    :func:`of_user`, :func:`of_client`. The default is the user's key, or the client's where there is no user."""
    expires_at: int | None = None
    """Seconds since 1970."""
    resource: str | None = None
    raw: Any = field(default=None, repr=False)
    """The backend's own record of the token: REST framework's ``request.auth``."""

    def __post_init__(self) -> None:
        # Two callers must not share a default subject: a caller with another's subject could use its sessions.
        if not self.subject:
            object.__setattr__(self, "subject", _subject(self.user, self.client_id))

    @property
    def claims(self) -> Any:
        """The token's claims, where its verifier provides them."""
        return getattr(self.raw, "claims", None)

    @property
    def __mcpace_verified__(self) -> tuple[str | None, float | None]:
        """For the compiled part: the key of the caller for sessions and rate limits, and the time until which the token
        is accepted. Each is ``None`` where ``subject`` and ``expires_at`` already say it."""
        caller, good_until = getattr(self.raw, "__mcpace_verified__", None) or (None, None)
        if self.subject is not None and self.subject == _subject(self.user, self.client_id):
            # A prefix of its own, so that no subject chosen by an issuer can equal it.
            caller = f":django:{self.subject}" if self.user is not None or caller is None else caller
        elif self.user is not None or self.subject != of_subject(getattr(self.raw, "subject", None) or ""):
            caller = None
        return caller, good_until if self.expires_at == getattr(self.raw, "expires_at", None) else None


def of_user(user: Any) -> str:
    """The subject of a user's token."""
    return f"user:{user.pk}"


def of_client(client_id: str) -> str:
    """The subject of a token that identifies a client without a user. The client's owner may have chosen its id."""
    return f"client:{client_id}"


def of_subject(subject: str) -> str:
    """The subject of a token that has an issuer's subject but no user in this project."""
    return f"sub:{subject}"


def _subject(user: Any, client_id: str) -> str | None:
    if getattr(user, "pk", None) is not None:
        return of_user(user)
    return of_client(client_id) if client_id else None


@runtime_checkable
class AuthBackend(Protocol):
    """Identifies callers by their tokens."""

    resource_url: str | None
    """URL of this server as clients see it."""
    authorization_servers: Sequence[str]
    required_scopes: Sequence[str]

    async def verify_token(self, token: str) -> Principal | None:
        """The principal of a token; ``None`` for a token that isn't valid."""
        ...


class AllowAny:
    """Accepts every caller without a token. For development: it warns on construction, and serves this machine only.

    ``user``: a function that returns the user of all calls; ``AnonymousUser`` without it. ``beyond_loopback``: also
    serves other machines.
    """

    def __init__(self, user: Callable[[], Any] | None = None, *, beyond_loopback: bool = False) -> None:
        self.user = user
        self.beyond_loopback = beyond_loopback
        warnings.warn(f"mcpace: {self.warning}", stacklevel=2)

    @property
    def warning(self) -> str:
        """The warning that is shown on construction and at each start of a server."""
        rights = " with a user's rights" if self.user is not None else ""
        return f"AllowAny lets every caller in{rights}: use it for development only, and DjangoOAuthToolkit otherwise"

    @property
    def loopback_only(self) -> str | None:
        """The reason for serving only this machine; ``None`` where other machines are served, too."""
        if self.beyond_loopback:
            return None
        return (
            "AllowAny lets every caller in, so it serves this machine only (loopback, such as 127.0.0.1): take another "
            "backend, or AllowAny(beyond_loopback=True)"
        )


class _ForResource:
    """Base of the backends with tokens: the metadata of the resource, and whether a token's audience is enforced."""

    def __init__(
        self,
        resource_url: str | None,
        authorization_servers: Sequence[str] | None,
        required_scopes: Sequence[str] | None,
        enforce_audience: bool | None,
    ) -> None:
        self.resource_url = resource_url or setting("RESOURCE_URL")
        servers = setting("AUTHORIZATION_SERVERS") if authorization_servers is None else authorization_servers
        scopes = setting("REQUIRED_SCOPES") if required_scopes is None else required_scopes
        self.authorization_servers: Sequence[str] = list(servers)
        self.required_scopes: Sequence[str] = list(scopes)
        self._enforces = bool(setting("ENFORCE_AUDIENCE") if enforce_audience is None else enforce_audience)


class DjangoOAuthToolkit(_ForResource):
    """Bearer tokens of django-oauth-toolkit, whose application is in the same project.

    Arguments that are not given are read from the settings ``RESOURCE_URL``, ``AUTHORIZATION_SERVERS``,
    ``REQUIRED_SCOPES`` and ``ENFORCE_AUDIENCE``.
    """

    def __init__(
        self,
        resource_url: str | None = None,
        authorization_servers: Sequence[str] | None = None,
        required_scopes: Sequence[str] | None = None,
        enforce_audience: bool | None = None,
    ) -> None:
        """``enforce_audience``: takes only tokens that were issued for this resource (RFC 8707; toolkit 3.4)."""
        super().__init__(resource_url, authorization_servers, required_scopes, enforce_audience)
        _check_metadata(self)
        if not apps.is_installed("oauth2_provider"):
            raise ImproperlyConfigured(
                "DjangoOAuthToolkit: 'oauth2_provider' is not in INSTALLED_APPS (pip install django-oauth-toolkit)"
            )
        if self._enforces:
            self._check_audience()

    async def verify_token(self, token: str) -> Principal | None:
        """The principal of a token; ``None`` for a token that isn't valid."""
        from asgiref.sync import sync_to_async

        # Any thread will do, because the call itself doesn't run in it.
        return await sync_to_async(self._look_up, thread_sensitive=False)(token)

    def _look_up(self, token: str) -> Principal | None:
        request_cycle.begin()
        try:
            return self.principal(token)
        finally:
            request_cycle.end()

    def principal(self, token: str) -> Principal | None:
        """The principal of a token, looked up in this thread; ``None`` for a token that isn't valid."""
        from oauth2_provider.oauth2_backends import get_oauthlib_core

        # The toolkit compares a token's resources with the URL of the request.
        request = _ResourceRequest(str(self.resource_url), token)
        is_good, found = get_oauthlib_core().verify_request(request, scopes=[])
        access = getattr(found, "access_token", None)
        if not is_good or access is None:
            return None
        user = access.user
        if _is_inactive(user):
            return None
        resource = self._resource(access)
        if self._enforces and resource is None:
            logger.info("a token that was not issued for %s was refused", self.resource_url)
            return None
        client_id = str(getattr(access.application, "client_id", ""))
        return Principal(
            user=user,
            scopes=tuple(access.scope.split()),
            client_id=client_id,
            expires_at=int(access.expires.timestamp()),
            resource=resource,
            raw=access,
        )

    def _resource(self, access: Any) -> str | None:
        """This server's URL, where the token was issued for it."""
        issued_for = getattr(access, "resource", None)
        return self.resource_url if issued_for and access.allows_audience(self.resource_url) else None

    def _check_audience(self) -> None:
        from oauth2_provider.models import get_access_token_model

        if not any(one.name == "resource" for one in get_access_token_model()._meta.get_fields()):
            raise ImproperlyConfigured(
                "ENFORCE_AUDIENCE: tokens don't say what they were issued for; django-oauth-toolkit does from 3.4 on"
            )


class TokenBackend(_ForResource):
    """Tokens of another issuer, by one of the runtime's verifiers (``JWTVerifier``, ``IntrospectionTokenVerifier`` of
    :mod:`mcpace.server.auth.tokens`) or a custom one: ``TokenBackend(JWTVerifier(jwks_uri=…), user=by_subject)``.

    Without ``user`` callers have scopes and no user, and verifying runs no Python. Arguments that are not given are
    read from the settings, as for :class:`DjangoOAuthToolkit`.
    """

    def __init__(
        self,
        verifier: Any,
        resource_url: str | None = None,
        authorization_servers: Sequence[str] | None = None,
        required_scopes: Sequence[str] | None = None,
        enforce_audience: bool | None = None,
        *,
        user: Callable[[Any], Any] | None = None,
        without_user: bool = False,
    ) -> None:
        """``user``: a function from the verifier's result to Django's user, called in a thread for each request. Its
        ``None`` (or ``DoesNotExist``) refuses the token, unless ``without_user`` accepts such tokens. Inactive users
        are refused."""
        super().__init__(resource_url, authorization_servers, required_scopes, enforce_audience)
        self._verifier = verifier
        self._user = user
        self._without_user = without_user
        self.required_scopes = [*self.required_scopes, *(getattr(verifier, "required_scopes", None) or ())]

    async def verify_token(self, token: str) -> Principal | None:
        """The principal of a token; ``None`` for a token that isn't valid."""
        from asgiref.sync import sync_to_async

        access = await self._verifier.verify_token(token)
        if access is None:
            return None
        return await sync_to_async(self._principal, thread_sensitive=False)(access)

    def __mcpace_verifier__(self) -> Any:
        """The verifier's compiled part, where no user has to be found."""
        native = getattr(self._verifier, "__mcpace_verifier__", None)
        return None if native is None or self._user is not None else native()

    @property
    def wants_resource(self) -> bool:
        """Whether a token must have been issued for this server's URL."""
        return self._enforces or bool(getattr(self._verifier, "wants_resource", False))

    @property
    def takes_any_audience(self) -> bool:
        """Whether tokens of any audience are accepted without the author having asked for that."""
        return not self._enforces and bool(getattr(self._verifier, "takes_any_audience", False))

    @property
    def warning(self) -> str | None:
        """The verifier's warning that it is for development, shown at each start of a server."""
        return getattr(self._verifier, "warning", None)

    @property
    def loopback_only(self) -> str | None:
        """The reason for serving only this machine, where the verifier is for development."""
        return getattr(self._verifier, "loopback_only", None)

    def _principal(self, access: Any) -> Principal | None:
        request_cycle.begin()
        try:
            user = None if self._user is None else self._user(access)
        except ObjectDoesNotExist:
            user = None
        finally:
            request_cycle.end()
        if user is None and self._user is not None and not self._without_user:
            logger.info("a token of no user was refused")
            return None
        if _is_inactive(user):
            return None
        subject = getattr(access, "subject", None) if user is None else None
        return Principal(
            user=user,
            scopes=tuple(access.scopes),
            client_id=access.client_id,
            subject=of_subject(subject) if subject else None,
            expires_at=access.expires_at,
            resource=access.resource,
            raw=access,
        )


class _ResourceRequest(HttpRequest):
    """A request with a token for the resource's public URL."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__()
        parts = urlsplit(url)
        self._scheme, self._host = parts.scheme, parts.netloc
        self.method = "POST"
        self.path = self.path_info = parts.path or "/"
        self.META = {"HTTP_AUTHORIZATION": f"Bearer {token}"}

    def get_host(self) -> str:
        """The resource's host, which need not be in ``ALLOWED_HOSTS``."""
        return self._host

    @property
    def scheme(self) -> str:
        """The scheme of the resource's URL."""
        return self._scheme


def backend(given: Any) -> Any:
    """The backend that a server was given, or the setting's. Raises ``ImproperlyConfigured`` where there is neither,
    because accepting every caller has to be requested explicitly."""
    if given is None:
        named = setting("AUTH_BACKEND")
        if named is None:
            raise ImproperlyConfigured(
                "MCPServer: who may call? Give auth=DjangoOAuthToolkit(), or auth=AllowAny() for development, or set "
                "MCPACE['AUTH_BACKEND']"
            )
        given = import_string(named)
    made = given() if isinstance(given, type) else given
    if callable(getattr(made, "verify_token", None)) and not hasattr(made, "authorization_servers"):
        made = TokenBackend(made)
    if not isinstance(made, AllowAny | AuthBackend):
        raise ImproperlyConfigured(
            f"auth={made!r} is no backend: one has resource_url, authorization_servers, required_scopes, verify_token"
        )
    if not isinstance(made, AllowAny):
        _check_metadata(made)
    return made


def _check_metadata(backend: AuthBackend) -> None:
    """Raises ``ImproperlyConfigured`` where the metadata for clients would be incomplete."""
    if not backend.resource_url or not backend.authorization_servers:
        raise ImproperlyConfigured(
            f"{type(backend).__name__}: clients are told which resource this is and who issues tokens for it. Set "
            "MCPACE = {'RESOURCE_URL': 'https://example.com/mcp', 'AUTHORIZATION_SERVERS': ['https://example.com']}"
        )


def _is_inactive(user: Any) -> bool:
    if user is None or user.is_active:
        return False
    logger.info("a token of an inactive user was refused")
    return True


def settings_of(backend: Any) -> AuthSettings:
    """The backend's metadata for clients, and the scopes that tokens must grant."""
    return AuthSettings.model_validate(
        {
            "issuer_url": backend.authorization_servers[0],
            "authorization_servers": list(backend.authorization_servers[1:]),
            "resource_server_url": backend.resource_url,
            "required_scopes": list(backend.required_scopes) or None,
        }
    )
