"""Tokens of other issuers on a Django server: the runtime's verifiers as its authentication backend."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
import types
from typing import Any

import pytest

from support.django_project import USER, setting
from support.python_server import Client, served

# isort: split
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import IsAuthenticated
from rest_framework_services import ServiceSpec

from mcpace import RateLimit
from mcpace.django import DjangoOAuthToolkit, MCPServer, Principal, ScopeRequired, TokenBackend
from mcpace.server.auth.bearer_tokens import AccessToken
from mcpace.server.auth.tokens import JWTVerifier, StaticTokenVerifier
from mcpace.server.errors import MCPError

SECRET = "a secret of more than thirty-two bytes"
RESOURCE = "http://127.0.0.1:8000/mcp"
ISSUER = "https://issuer.example"


def jwt(**claims: Any) -> str:
    """A token that the issuer has signed."""
    whole = {
        "iss": ISSUER,
        "exp": int(time.time()) + 3600,
        "aud": RESOURCE,
        "scope": "read",
        "client_id": "app",
    } | claims
    parts = [_url(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, whole)]
    signature = hmac.new(SECRET.encode(), ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join((*parts, _url(signature)))


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def verifier(**options: Any) -> JWTVerifier:
    return JWTVerifier(public_key=SECRET, algorithm="HS256", issuer=ISSUER, **options)


def by_subject(access: AccessToken) -> Any:
    return User.objects.filter(username=access.subject).first()


def shop(auth: Any, **options: Any) -> MCPServer:
    made = MCPServer("shop", auth=auth)

    def who(*, user: Any, request: Any) -> dict[str, Any]:
        auth = request.auth
        return {"user": user.username, "subject": getattr(auth, "subject", None), "iss": auth.claims["iss"]}

    made.register_service_tool(name="who", spec=ServiceSpec(service=who), **{"permissions": []} | options)
    return made


def asked(made: MCPServer, token: str) -> tuple[int, Any]:
    """Status and, where there is one, the result."""
    with served(made) as port:
        client = Client(port, headers={"Authorization": f"Bearer {token}"})
        reply = client.call("who")
        return client.status, reply.get("structuredContent")


def test_a_verifier_alone_is_a_backend_without_users() -> None:
    made = shop(verifier())
    # No user has to be found, so verifying runs no Python.
    assert made.backend.__mcpace_verifier__() is not None
    assert asked(made, jwt(sub="ada")) == (200, {"user": "", "subject": "ada", "iss": ISSUER})
    assert asked(made, jwt(sub="ada", aud="https://other.example/mcp"))[0] == 401
    assert asked(made, jwt(sub="ada", exp=1))[0] == 401
    assert asked(made, "rubbish")[0] == 401
    assert asked(shop(verifier(), permissions=[ScopeRequired("write")]), jwt(sub="ada"))[0] == 403
    assert asked(shop(verifier(), permissions=[ScopeRequired("write")]), jwt(sub="ada", scope="write"))[0] == 200
    assert asked(shop(verifier(), permissions=[IsAuthenticated]), jwt(sub="ada"))[0] == 403


def test_a_token_is_the_users_whom_the_project_finds() -> None:
    User.objects.get_or_create(username="left", is_active=False)
    made = shop(TokenBackend(verifier(), user=by_subject))
    assert made.backend.__mcpace_verifier__() is None
    assert asked(made, jwt(sub="root")) == (200, {"user": "root", "subject": "root", "iss": ISSUER})
    assert asked(made, jwt(sub="left"))[0] == 401
    # The audience is enforced nevertheless, also for tokens with several.
    assert asked(made, jwt(sub="root", aud="https://other.example"))[0] == 401
    assert asked(made, jwt(sub="root", aud=["https://other.example", RESOURCE]))[0] == 200
    assert asked(made, jwt(sub="root", scope=""))[0] == 200
    strict = shop(TokenBackend(verifier(required_scopes=["write"]), user=by_subject))
    assert asked(strict, jwt(sub="root"))[0] in (401, 403)
    assert asked(strict, jwt(sub="root", scope="write"))[0] == 200


def by_name(access: AccessToken) -> Any:
    return User.objects.get(username=access.subject)


@pytest.mark.parametrize("find", [by_subject, by_name])
def test_a_token_of_no_user_is_refused_unless_it_may_come(find: Any) -> None:
    """The token of a deleted user is refused."""
    assert asked(shop(TokenBackend(verifier(), user=find)), jwt(sub="deleted"))[0] == 401
    loose = shop(TokenBackend(verifier(), user=find, without_user=True))
    assert asked(loose, jwt(sub="deleted")) == (200, {"user": "", "subject": "deleted", "iss": ISSUER})
    assert asked(loose, jwt(sub="root"))[1]["user"] == "root"


def test_a_principal_is_known_by_its_user_or_its_client() -> None:
    other = User(pk=USER.pk + 1)
    named = [Principal(user=USER), Principal(user=other), Principal(None, client_id="app"), Principal(None)]
    assert [one.subject for one in named] == [f"user:{USER.pk}", f"user:{other.pk}", "client:app", None]
    assert Principal(user=USER, subject="own").subject == "own"
    assert Principal(user=USER, subject="").subject == f"user:{USER.pk}"


def test_no_issuer_can_name_a_caller_as_a_user_or_client_of_this_project_is_named() -> None:
    made = MCPServer("shop", auth=TokenBackend(verifier()))
    spec = ServiceSpec(service=lambda: {"n": 1}, permission_classes=[])
    made.register_service_tool(name="who", spec=spec, rate_limits=[RateLimit("1/hour")])
    for name in (f"user:{USER.pk}", f":django:user:{USER.pk}", "client:app", ":django:client:app"):
        assert asked(made, jwt(sub=name))[0] == 200
    # Each is a separate caller, different from the user and the client.
    assert made.call_tool("who", user=USER)
    assert made.call_tool("who", principal=Principal(None, client_id="app"))
    with pytest.raises(MCPError):
        made.call_tool("who", user=USER)


def test_a_wrapped_verifiers_callers_and_times_are_its_own() -> None:
    issuers = [ISSUER, "https://other.example"]
    several = JWTVerifier(public_key=SECRET, algorithm="HS256", issuer=issuers, leeway_seconds=3600)
    made = MCPServer("shop", auth=TokenBackend(several, user=by_subject, without_user=True))
    spec = ServiceSpec(service=lambda: {"n": 1}, permission_classes=[])
    made.register_service_tool(name="who", spec=spec, rate_limits=[RateLimit("1/hour")])
    past = int(time.time()) - 60
    for named in ("ada-elsewhere", "root"):
        first, second = (jwt(sub=named, iss=issuer, exp=past) for issuer in issuers)
        assert [asked(made, token)[1] for token in (first, first)] == [{"n": 1}, None]
        # Subjects of two issuers are two callers, unless both are one user of this project.
        assert asked(made, second)[1] == (None if named == "root" else {"n": 1})


class Names:
    """A custom backend, whose tokens have only a subject."""

    resource_url, authorization_servers, required_scopes = RESOURCE, (ISSUER,), ()

    async def verify_token(self, token: str) -> Principal | None:
        return Principal(user=await User.objects.filter(username=token).afirst())


def test_callers_of_an_own_backend_are_not_one() -> None:
    User.objects.get_or_create(username="ada")
    made = MCPServer("shop", auth=Names())
    spec = ServiceSpec(service=lambda *, user: {"user": user.username}, permission_classes=[])
    made.register_service_tool(name="who", spec=spec, rate_limits=[RateLimit("1/hour")])
    with served(made) as port:
        clients = [Client(port, "legacy", headers={"Authorization": f"Bearer {name}"}) for name in ("root", "ada")]
        root, ada = clients
        for client, name in ((root, "root"), (ada, "ada")):
            client.begin()
            assert client.call("who")["structuredContent"] == {"user": name}
        ada.session = root.session
        ada.once("tools/list", {}, {})
        assert ada.status == 404


def test_an_audience_is_enforced_where_that_is_wanted() -> None:
    tokens = {"t": {"client_id": "app", "aud": "https://other.example", "iss": ISSUER}}
    for user in (None, by_subject):
        loose = TokenBackend(StaticTokenVerifier(tokens), user=user, without_user=True)
        strict = TokenBackend(StaticTokenVerifier(tokens), user=user, without_user=True, enforce_audience=True)
        assert [asked(shop(backend), "t")[0] for backend in (loose, strict)] == [200, 401]


def test_a_setting_names_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("project_auth")
    module.backend = TokenBackend(verifier(), user=by_subject)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "project_auth", module)
    with setting(AUTH_BACKEND="project_auth.backend"):
        assert asked(shop(None), jwt(sub="root"))[1]["user"] == USER.username


def test_clients_are_told_of_all_issuers() -> None:
    servers = ["https://one.example", "https://two.example"]
    for backend in (TokenBackend(verifier(), RESOURCE, servers), DjangoOAuthToolkit(RESOURCE, servers)):
        assert shop(backend).__mcpace__().options["authorization_servers"] == servers


def test_a_backend_that_says_too_little_is_refused() -> None:
    with setting(AUTHORIZATION_SERVERS=[]), pytest.raises(ImproperlyConfigured, match="who issues tokens"):
        shop(verifier())
    with setting(RESOURCE_URL=None), pytest.raises(ImproperlyConfigured, match="which resource this is"):
        shop(verifier())
