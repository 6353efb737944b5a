"""Verifiers of signed tokens, of tokens that the issuer introspects, and of tokens for development.

Names and keywords are FastMCP's. In an mcpace server none of them runs Python for a request: the compiled part
verifies, and makes an :class:`AccessToken` only if a function asks for it. Elsewhere they are ordinary verifiers with
``verify_token``.

Design constraint: unusable options are refused when a verifier is made. A keyword of FastMCP's that would have no
effect is refused, not ignored. A subclass that overrides ``verify_token`` is called for each token. Loaded only by
servers that use such a verifier.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mcpace import _core
from mcpace.server.auth.bearer_tokens import AccessToken, Found
from mcpace.server.errors import UnsupportedOption


class TokensUnavailable(Exception):
    """Tokens can't be verified at the moment, because the issuer is unreachable. A server answers 503."""


class NativeTokenVerifier:
    """Base of the verifiers of this module."""

    def __init__(self, core: _core.NativeVerifier, required_scopes: Sequence[str] | str | None) -> None:
        self._core = core
        self.required_scopes = _words(required_scopes)
        """Scopes that a token must have."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """The content of the token; ``None`` if it is not valid. Raises :class:`TokensUnavailable`."""
        try:
            access: AccessToken | None = await self._core.verify(token)
        except _core.EnvironmentProblem as problem:
            raise TokensUnavailable(str(problem)) from problem
        if access is None or not set(self.required_scopes) <= set(access.scopes):
            return None
        return access

    def __mcpace_verifier__(self) -> _core.NativeVerifier | None:
        """The compiled verifier, if it alone decides; ``None`` for subclasses that override ``verify_token``."""
        is_own = type(self).verify_token is not NativeTokenVerifier.verify_token
        return None if is_own else self._core

    @property
    def wants_resource(self) -> bool:
        """Whether tokens must name the server's own address unless the server's settings say otherwise."""
        return False

    @property
    def takes_any_audience(self) -> bool:
        """Whether tokens for other services of the issuer are accepted although no option allows it."""
        return False

    @property
    def warning(self) -> str | None:
        """A warning that is printed at start; ``None`` for verifiers fit for production."""
        return None

    @property
    def loopback_only(self) -> str | None:
        """The reason why a server with this verifier serves this machine only; ``None`` if it serves others. It also
        holds for subclasses and wrapped verifiers."""
        return None


class JWTVerifier(NativeTokenVerifier):
    """Verifies signed tokens. Only keys are fetched."""

    def __init__(
        self,
        *,
        public_key: str | bytes | None = None,
        jwks_uri: str | None = None,
        issuer: str | Sequence[str] | None = None,
        audience: str | Sequence[str] | None = None,
        algorithm: str | Sequence[str] | None = None,
        required_scopes: Sequence[str] | str | None = None,
        base_url: Any = None,
        ssrf_safe: bool = False,
        http_client: Any = None,
        jwks_refresh_interval: float = 30.0,
        jwks: Mapping[str, Any] | str | None = None,
        leeway_seconds: float = 10.0,
        require_expiry: bool = True,
        timeout_seconds: float = 10.0,
        ca_certificate: str | None = None,
        allow_plain_http: bool = False,
    ) -> None:
        """Keys come from one place: ``jwks_uri`` (fetched, kept, fetched anew when the issuer rotates them),
        ``public_key`` (PEM; with HS256, HS384 or HS512 the shared secret, of 32 bytes at least) or ``jwks``.

        ``audience`` is the audience that tokens must name. Without it tokens must name the server's own address
        (``AuthSettings.resource_server_url``), unless ``validate_token_resource=False`` accepts any. ``algorithm`` is
        one or several; by default those that the keys are for, never a shared secret's. ``jwks_refresh_interval`` is
        the minimum time between two requests for keys, even if tokens name unknown keys. ``ca_certificate`` is a
        certificate (PEM) that is trusted beside the system's. ``allow_plain_http`` allows requests to other machines
        without TLS.
        """
        _refuse(base_url, http_client)
        if ssrf_safe:
            raise UnsupportedOption("ssrf_safe=True: give a jwks_uri that you trust; redirects are never followed")
        if not public_key and not jwks_uri and not jwks:
            raise ValueError("Either public_key or jwks_uri must be provided")
        if public_key and jwks_uri:
            raise ValueError("Provide either public_key or jwks_uri, not both")
        algorithms = _words(algorithm)
        given = public_key.decode() if isinstance(public_key, bytes) else public_key
        is_shared = any(name.startswith("HS") for name in algorithms)
        self.issuer, self.audience, self.jwks_uri = issuer, audience, jwks_uri
        options: dict[str, Any] = {
            "jwks_uri": jwks_uri or None,
            "jwks": jwks if isinstance(jwks, str) or jwks is None else json.dumps(jwks),
            "algorithms": algorithms,
            "issuers": _list(issuer),
            "audiences": _list(audience),
            "leeway_s": leeway_seconds,
            "needs_expiry": require_expiry,
            "key_interval_s": jwks_refresh_interval,
            "timeout_s": timeout_seconds,
            "extra_root": ca_certificate,
            "without_tls": allow_plain_http,
        }
        if given:
            options["secret" if is_shared else "public_key"] = given
        try:
            core = _made(_core.JwtVerifier, **options)
        except ValueError as error:
            if given and "the key can't be used" in str(error):
                raise UnsupportedOption(
                    f"public_key: {error}; give the issuer's public key in PEM, or jwks_uri=…, where the issuer "
                    "publishes its keys"
                ) from None
            raise
        super().__init__(core, required_scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """The result of :meth:`verify_token`."""
        return await self.verify_token(token)

    @property
    def wants_resource(self) -> bool:
        return not self.audience


class IntrospectionTokenVerifier(NativeTokenVerifier):
    """Verifies tokens by asking their issuer (RFC 7662). Answers are cached, and concurrent requests for a token share
    one."""

    def __init__(
        self,
        *,
        introspection_url: str,
        client_id: str,
        client_secret: Any,
        client_auth_method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic",
        timeout_seconds: float = 10,
        required_scopes: Sequence[str] | str | None = None,
        audience: str | Sequence[str] | None = None,
        base_url: Any = None,
        cache_ttl_seconds: float | None = 60,
        max_cache_size: int | None = None,
        http_client: Any = None,
        issuer: str | Sequence[str] | None = None,
        refusal_ttl_seconds: float = 5,
        grace_seconds: float = 0,
        ca_certificate: str | None = None,
        allow_plain_http: bool = False,
    ) -> None:
        """``client_id`` and ``client_secret`` are this server's own at the issuer.

        ``cache_ttl_seconds`` is how long a positive answer is cached, and so how long a revoked token is still
        accepted; it never exceeds the token's expiry. ``0`` or ``None`` asks at each call. ``refusal_ttl_seconds`` is
        how long a negative answer is cached. ``grace_seconds`` extends a positive answer while the issuer is
        unreachable, and so also the use of a token that was revoked meanwhile. ``max_cache_size`` is the number of
        cached answers of each kind, 10,000 by default. ``ca_certificate`` and ``allow_plain_http`` are those of
        :class:`JWTVerifier`.
        """
        _refuse(base_url, http_client)
        is_kept = bool(cache_ttl_seconds) and max_cache_size != 0
        if audience is not None and not all(_list(audience) or [""]):
            raise ValueError("audience must contain nonempty strings")
        self.introspection_url, self.client_id, self.audience = introspection_url, client_id, audience
        secret = client_secret.get_secret_value() if hasattr(client_secret, "get_secret_value") else client_secret
        core = _made(
            _core.IntrospectionVerifier,
            url=introspection_url,
            client_id=client_id,
            client_secret=secret,
            client_auth=client_auth_method,
            audiences=_list(audience),
            issuers=_list(issuer),
            kept_s=cache_ttl_seconds if is_kept else 0,
            grace_s=grace_seconds,
            refusals_kept_s=refusal_ttl_seconds if is_kept else 0,
            most_kept=max_cache_size or 10_000,
            timeout_s=timeout_seconds,
            extra_root=ca_certificate,
            without_tls=allow_plain_http,
        )
        super().__init__(core, required_scopes)

    @property
    def takes_any_audience(self) -> bool:
        return not self.audience


class _Development(NativeTokenVerifier):
    """Base of the verifiers for development."""

    _is_for_all = False
    """Whether other machines are served, too."""

    @property
    def loopback_only(self) -> str | None:
        if self._is_for_all:
            return None
        return (
            f"{type(self).__name__} is for development, so it serves this machine only (loopback, such as 127.0.0.1): "
            "take JWTVerifier or IntrospectionTokenVerifier, or beyond_loopback=True"
        )


class StaticTokenVerifier(_Development):
    """Accepts the tokens of a list, for development and tests: the tokens are in the program's text. A server with it
    warns, and serves this machine only."""

    def __init__(
        self,
        tokens: Mapping[str, Mapping[str, Any]],
        required_scopes: Sequence[str] | str | None = None,
        *,
        beyond_loopback: bool = False,
    ) -> None:
        """``tokens`` maps each token to its ``client_id``, and optionally ``scopes``, ``sub``, ``expires_at``, ``aud``
        and any other claims. ``beyond_loopback``: serves other machines all the same."""
        listed = []
        for token, data in tokens.items():
            if "client_id" not in data:
                raise ValueError("each token of StaticTokenVerifier needs a client_id")
            scopes, audiences = _words(data.get("scopes")), _list(data.get("aud"))
            claims = json.dumps(dict(data), default=str)
            end = data.get("expires_at")
            listed.append((token, data["client_id"], data.get("sub"), scopes, end, audiences, claims))
        self._is_for_all = beyond_loopback
        super().__init__(_made(_core.StaticVerifier, listed, beyond_loopback=beyond_loopback), required_scopes)

    @property
    def warning(self) -> str:
        return "tokens are a list in the program's text: for development only"


class AllowAny(_Development):
    """Accepts every token as the same caller, for development only. A server with it warns, and serves this machine
    only."""

    def __init__(
        self, client_id: str = "anyone", scopes: Sequence[str] | str | None = None, *, beyond_loopback: bool = False
    ) -> None:
        """``client_id`` and ``scopes`` are those of all callers. ``beyond_loopback``: serves other machines all the
        same."""
        anyone = (client_id, _words(scopes))
        self._is_for_all = beyond_loopback
        super().__init__(_made(_core.StaticVerifier, anyone=anyone, beyond_loopback=beyond_loopback), None)

    @property
    def warning(self) -> str:
        return "every token is taken, whoever sends it: for development only"


def _made(make: Any, *listed: Any, **options: Any) -> Any:
    try:
        return make(*listed, **options)
    except _core.UsageProblem as problem:
        raise ValueError(str(problem)) from None


def _refuse(base_url: Any, http_client: Any) -> None:
    if base_url is not None:
        raise UnsupportedOption("base_url: the server's own address is AuthSettings(resource_server_url=…)")
    if http_client is not None:
        raise UnsupportedOption(
            "http_client: the compiled part asks the issuer; of that timeout_seconds and ca_certificate can be set"
        )


def _list(given: str | Sequence[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def _words(given: str | Sequence[str] | None) -> list[str]:
    return given.replace(",", " ").split() if isinstance(given, str) else list(given or ())


def _access_token(
    *,
    token: str,
    client_id: str,
    scopes: list[str],
    expires_at: int | None,
    resource: str | None,
    subject: str | None,
    claims: str,
    caller: str,
    good_until: float | None,
) -> AccessToken:
    made = AccessToken(
        token=token,
        client_id=client_id,
        scopes=scopes,
        expires_at=expires_at,
        resource=resource,
        subject=subject,
        claims=json.loads(claims),
    )
    made._found = Found(caller, good_until, subject, client_id, expires_at)
    return made


_core.set_access_token(_access_token)
