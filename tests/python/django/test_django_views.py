"""The endpoint in a URLconf: WSGI and ASGI views, tokens of django-oauth-toolkit, hosts and bodies."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import signal
import threading
import types
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from support.django_project import USER, server, setting
from support.python_server import Client as Wire
from support.python_server import served

# isort: split
from django.contrib.auth.models import AnonymousUser, User
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import request_finished, request_started
from django.db import connection
from django.http import HttpRequest
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_application_model
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from mcpace.django import AllowAny, CacheRateLimit, DjangoOAuthToolkit, MCPServer, ScopeRequired, conf, views
from mcpace.django.management.commands import mcpace as command
from mcpace.server.errors import RegistrationError
from mcpace.server.running.embedded_endpoint import EmbeddedEndpoint
from mcpace.server.running.prepared import prepare

MODERN, LEGACY = "2026-07-28", "2025-11-25"
RESOURCE = "http://testserver/api/mcp"


class Number(serializers.Serializer):
    n = serializers.IntegerField()


def filled(made: MCPServer, **options: Any) -> MCPServer:
    """Adds a service that returns the caller."""

    def who(*, n: int, user: Any, request: Any) -> dict[str, Any]:
        return {"n": n, "user": user.username, "token": type(request.auth).__name__}

    options = {"permissions": [IsAuthenticated]} | options
    made.register_service_tool(name="who", spec=ServiceSpec(service=who, input_serializer=Number), **options)
    return made


def mounted(made: MCPServer, *, is_async: bool = False) -> Any:
    """Mounts a server in a URLconf."""
    conf = types.ModuleType("conf")
    urls, metadata = (made.async_urls, made.async_metadata_urls) if is_async else (made.urls, made.metadata_urls)
    conf.urlpatterns = [path("api/mcp", urls), path("", metadata)]  # type: ignore[attr-defined]
    return override_settings(ROOT_URLCONF=conf)


def request(tool: str = "who", /, **arguments: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def headers(token: str | None = None, tool: str = "who") -> dict[str, str]:
    given = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return given | ({"Authorization": f"Bearer {token}"} if token else {})


def post(token: str | None = None, **arguments: Any) -> Any:
    # Django's CSRF check is enabled, and the view is exempt from it.
    client = Client(enforce_csrf_checks=True)
    body = json.dumps(request("who", **arguments))
    return client.post("/api/mcp", body, content_type="application/json", headers=headers(token))


@pytest.fixture
def application() -> Any:
    return get_application_model().objects.create(
        name="app", client_type="public", authorization_grant_type="authorization-code", user=USER
    )


@pytest.fixture
def token(application: Any) -> Iterator[Any]:
    """Makes tokens."""

    def make(text: str, scope: str = "invoices:read", *, user: Any = USER, hours: int = 1) -> str:
        expires = timezone.now() + datetime.timedelta(hours=hours)
        get_access_token_model().objects.create(
            token=text, scope=scope, user=user, application=application, expires=expires
        )
        return text

    yield make
    get_access_token_model().objects.all().delete()


def guarded(**options: Any) -> MCPServer:
    return filled(MCPServer("shop", auth=DjangoOAuthToolkit(RESOURCE, ["http://testserver"], **options)))


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    cache.clear()


# WSGI and ASGI -------------------------------------------------------------------------------------------------------


def test_a_wsgi_view_answers_json() -> None:
    csrf = override_settings(MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"])
    with csrf, mounted(filled(server())):
        answer = post(n=3)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["result"]["structuredContent"] == {"n": 3, "user": "root", "token": "NoneType"}


def test_an_asgi_view_answers_and_streams() -> None:
    made = filled(server())

    def slow(*, n: int, progress: Any) -> dict[str, int]:
        progress(1, total=2)
        return {"n": n}

    made.register_service_tool(name="slow", spec=ServiceSpec(service=slow, input_serializer=Number), permissions=[])
    told = request("slow", n=4)
    told["params"]["_meta"]["progressToken"] = "p"

    async def run() -> tuple[Any, bytes, Any]:
        client = AsyncClient()
        plain = await client.post(
            "/api/mcp", json.dumps(request(n=3)), content_type="application/json", headers=headers()
        )
        streamed = await client.post(
            "/api/mcp", json.dumps(told), content_type="application/json", headers=headers(tool="slow")
        )
        whole = b"".join([part async for part in streamed]) if streamed.streaming else streamed.content
        return plain, whole, streamed

    with mounted(made, is_async=True):
        plain, whole, streamed = asyncio.run(run())
    assert plain.json()["result"]["structuredContent"]["n"] == 3
    assert streamed.headers["Content-Type"].startswith("text/event-stream")
    assert b"notifications/progress" in whole
    assert b'"structuredContent":{"n":4}' in whole


def test_atomic_requests_and_an_async_view_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django refuses async views with ``ATOMIC_REQUESTS``, so the transaction is that of the call, not of the view."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    made = server()
    spec = ServiceSpec(service=lambda: {"atomic": connection.in_atomic_block}, atomic=False)
    made.register_service_tool(name="who", spec=spec, permissions=[])

    async def run() -> Any:
        return await AsyncClient().post(
            "/api/mcp", json.dumps(request()), content_type="application/json", headers=headers()
        )

    with mounted(made, is_async=True):
        assert asyncio.run(run()).json()["result"]["structuredContent"] == {"atomic": True}
    with mounted(made):
        assert post().json()["result"]["structuredContent"] == {"atomic": True}


def test_sessions_are_asgis_alone_unless_said_otherwise() -> None:
    initialize = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    accepts = {"Accept": "application/json, text/event-stream"}

    async def begin() -> Any:
        return await AsyncClient().post(
            "/api/mcp", json.dumps(initialize), content_type="application/json", headers=accepts
        )

    with mounted(filled(server())):
        answer = Client().post("/api/mcp", json.dumps(initialize), content_type="application/json", headers=accepts)
        assert answer.status_code == 200
        assert "Mcp-Session-Id" not in answer.headers
        assert Client().get("/api/mcp", headers=accepts).status_code == 405
    with mounted(filled(server()), is_async=True):
        assert "Mcp-Session-Id" in asyncio.run(begin()).headers
    with setting(STATELESS=True), mounted(filled(server()), is_async=True):
        assert "Mcp-Session-Id" not in asyncio.run(begin()).headers


def test_hosts_origins_and_bodies_are_looked_at() -> None:
    with mounted(filled(server())):
        body = json.dumps(request(n=1))
        client = Client()

        def status(body: str, **given: str) -> int:
            return int(
                client.post("/api/mcp", body, content_type="application/json", headers=headers() | given).status_code
            )

        assert status(body) == 200
        assert status(body, Host="evil.example") == 400
        assert status(body, Origin="https://evil.example") == 403
        assert status("x" * ((1 << 20) + 1)) == 413
        with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=10):
            assert status(body) == 413
    with setting(ALLOWED_ORIGINS=["https://app.example"]), mounted(filled(server())):
        assert status(body, Origin="https://app.example") == 200


def test_the_signals_of_a_request_are_sent_around_a_call_where_somebody_listens() -> None:
    heard: list[str] = []

    def started(sender: Any, **_: Any) -> None:
        heard.append(f"started {getattr(sender, '__name__', None)}")

    def finished(sender: Any, **_: Any) -> None:
        heard.append(f"finished {getattr(sender, '__name__', None)}")

    request_started.connect(started)
    request_finished.connect(finished)
    try:
        with mounted(filled(server())):
            assert post(n=1).status_code == 200
    finally:
        request_started.disconnect(started)
        request_finished.disconnect(finished)
    assert [one for one in heard if one.endswith("Cycle")] == ["started Cycle", "finished Cycle"]


def test_a_store_that_is_away_at_the_beginning_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    with setting(STORE="redis://127.0.0.1:1", STATELESS=False), mounted(filled(server())):
        answer = post(n=1)
    assert (answer.status_code, answer.content) == (503, b"the endpoint can't begin at the moment")
    assert "Redis at 127.0.0.1:1 can't be reached" in caplog.text


def test_requests_that_come_while_a_store_is_away_wait_for_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, may_end = [], threading.Event()
    wait = EmbeddedEndpoint.begin_on_loop

    def prepared(made: MCPServer) -> Any:
        attempts.append(made)
        assert may_end.wait(60)
        return prepare(made)

    async def run() -> list[int]:
        here = asyncio.Semaphore(0)

        async def counted(hosted: EmbeddedEndpoint) -> Any:
            here.release()
            return await wait(hosted)

        monkeypatch.setattr(EmbeddedEndpoint, "begin_on_loop", counted)
        call = json.dumps(request(n=1))
        asked = [
            AsyncClient().post("/api/mcp", call, content_type="application/json", headers=headers()) for _ in range(40)
        ]
        answers = asyncio.gather(*asked)
        for _ in asked:
            await here.acquire()
        may_end.set()
        return [one.status_code for one in await answers]

    monkeypatch.setattr(views, "prepare", prepared)
    with setting(STORE="redis://127.0.0.1:1", STATELESS=False), mounted(filled(server()), is_async=True):
        assert asyncio.run(run()) == [503] * 40
    assert len(attempts) == 1


@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_begins_anew() -> None:
    """A fork after the application was loaded and has answered a request, as with workers of gunicorn."""
    with mounted(filled(server())):
        assert post(n=1).status_code == 200
        child = os.fork()
        if child == 0:
            # The alarm ends the child if a request hangs.
            signal.alarm(60)
            os._exit(0 if post(n=2).status_code == 200 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert post(n=3).status_code == 200


# Tokens --------------------------------------------------------------------------------------------------------------


def test_a_call_without_a_token_is_challenged_and_the_challenge_leads_somewhere() -> None:
    with mounted(guarded(required_scopes=["invoices:read"])):
        answer = post(n=1)
        assert answer.status_code == 401
        challenge = answer.headers["WWW-Authenticate"]
        found = "http://testserver/.well-known/oauth-protected-resource/api/mcp"
        assert f'resource_metadata="{found}"' in challenge
        metadata = Client().get(found.removeprefix("http://testserver")).json()
    assert metadata["resource"] == RESOURCE
    assert metadata["authorization_servers"] == ["http://testserver"]
    assert metadata["scopes_supported"] == ["invoices:read"]


def test_a_token_is_its_users(token: Any) -> None:
    with mounted(guarded()):
        answer = post(token("good"), n=1)
        assert answer.json()["result"]["structuredContent"] == {"n": 1, "user": "root", "token": "AccessToken"}


def test_bad_tokens_are_refused(token: Any) -> None:
    gone = User.objects.create_user("gone", is_active=False)
    with mounted(guarded(required_scopes=["invoices:read"])):
        assert post("unknown", n=1).status_code == 401
        assert post(token("old", hours=-1), n=1).status_code == 401
        assert post(token("inactive", user=gone), n=1).status_code == 401
        lacking = post(token("lacking", "invoices:write"), n=1)
        assert lacking.status_code == 403
        assert 'error="insufficient_scope"' in lacking.headers["WWW-Authenticate"]
        assert post(token("fine"), n=1).status_code == 200


def test_a_token_of_a_client_alone_has_no_user(token: Any) -> None:
    made = MCPServer("shop", auth=DjangoOAuthToolkit(RESOURCE, ["http://testserver"]))
    spec = ServiceSpec(service=lambda *, user: {"anonymous": isinstance(user, AnonymousUser)})
    made.register_service_tool(name="who", spec=spec, permissions=[])
    with mounted(made):
        assert post(token("machine", user=None)).json()["result"]["structuredContent"] == {"anonymous": True}


def test_a_client_is_no_user(token: Any, application: Any) -> None:
    """A client whose id equals that of a user shares neither that user's limit nor their sessions."""
    application.client_id = str(USER.pk)
    application.save()
    made = MCPServer("shop", auth=DjangoOAuthToolkit(RESOURCE, ["http://testserver"]))
    filled(made, permissions=[], rate_limits=["1/hour"])
    with mounted(made):
        client, user = token("of-a-client", user=None), token("of-a-user")
        assert [post(client, n=1).status_code for _ in range(2)] == [200, 429]
        assert [post(user, n=1).status_code for _ in range(2)] == [200, 429]


def test_the_audience_is_checked_where_that_is_wanted(token: Any, application: Any) -> None:
    with mounted(guarded(enforce_audience=True)):
        assert post(token("for-anybody"), n=1).status_code == 401
        for text, resource in (("for-others", "https://other.example/mcp"), ("for-us", RESOURCE)):
            row = get_access_token_model().objects.get(token=token(text))
            row.resource = resource if isinstance(row.resource, str) else [resource]
            row.save()
        assert post("for-others", n=1).status_code == 401
        assert post("for-us", n=1).status_code == 200


def test_a_tools_own_scope_is_needed_and_named(token: Any) -> None:
    made = MCPServer("shop", auth=DjangoOAuthToolkit(RESOURCE, ["http://testserver"]))
    filled(made, permissions=[IsAuthenticated, ScopeRequired("invoices:write")])
    with mounted(made):
        denied = post(token("reader"), n=1)
        assert denied.json()["error"]["code"] == -32003
        assert denied.json()["error"]["data"] == {"requiredScopes": ["invoices:write"]}
        assert denied.status_code == 403
        assert 'scope="invoices:write"' in denied.headers["WWW-Authenticate"]
        assert post(token("writer", "invoices:write"), n=1).status_code == 200


def test_what_a_permission_class_denies_is_forbidden_over_http() -> None:
    with mounted(filled(server(user=False))):
        denied = post(n=1)
    assert denied.status_code == 403
    assert denied.json()["error"]["code"] == -32003


def test_lists_leave_out_what_a_token_has_no_scope_for(token: Any) -> None:
    made = MCPServer("shop", auth=DjangoOAuthToolkit(RESOURCE, ["http://testserver"]))
    filled(made, permissions=[IsAuthenticated, ScopeRequired("invoices:write")])
    listing = request()
    listing["method"], listing["params"] = "tools/list", {"_meta": listing["params"]["_meta"]}
    with mounted(made):
        for text, scope, shown in (("reads", "invoices:read", []), ("writes", "invoices:write", ["who"])):
            given = headers(token(text, scope)) | {"Mcp-Method": "tools/list"}
            del given["Mcp-Name"]
            answer = Client().post("/api/mcp", json.dumps(listing), content_type="application/json", headers=given)
            assert [tool["name"] for tool in answer.json()["result"]["tools"]] == shown


def test_a_backend_that_makes_no_sense_is_refused() -> None:
    with setting(AUTH_BACKEND=None), pytest.raises(ImproperlyConfigured, match="who may call"):
        MCPServer("shop")
    with setting(RESOURCE_URL=None), pytest.raises(ImproperlyConfigured, match="RESOURCE_URL"):
        DjangoOAuthToolkit()
    with pytest.raises(ImproperlyConfigured, match="is no backend"):
        MCPServer("shop", auth=object())
    with pytest.warns(UserWarning, match="lets every caller in"):
        AllowAny()
    with warnings.catch_warnings(), setting(AUTH_BACKEND="mcpace.django.AllowAny"):
        warnings.simplefilter("ignore")
        assert isinstance(MCPServer("shop").backend, AllowAny)


# Limits and settings -------------------------------------------------------------------------------------------------


def test_the_cache_counts_calls_by_user() -> None:
    limit = CacheRateLimit("2/hour")
    made = filled(server(), rate_limits=[limit])
    with mounted(made):
        assert [post(n=1).status_code for _ in range(3)] == [200, 200, 429]
        refused = post(n=1)
        assert refused.json()["error"]["code"] == -32004
        assert 0 < refused.json()["error"]["data"]["retryAfterMs"] <= 3_600_000
        assert 0 < int(refused.headers["Retry-After"]) <= 3_600
    clerk = User.objects.create_user("another")
    assert made.call_tool("who", {"n": 1}, user=clerk).structured_content


def test_a_cache_that_cannot_count_is_refused() -> None:
    caches = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    files = {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "/tmp/unused"}
    with override_settings(CACHES=caches | {"files": files}):
        CacheRateLimit("1/s")
        with pytest.raises(ImproperlyConfigured, match="can't count in one step"):
            CacheRateLimit("1/s", cache="files")
    for wrong in ("100", "0/minute", "5/0 seconds", "many/minute"):
        with pytest.raises(RegistrationError, match="calls and time"):
            CacheRateLimit(wrong)
    with pytest.raises(RegistrationError, match="RateLimit knows 'token-bucket'"):
        CacheRateLimit("1/s", algorithm="token-bucket")


def test_settings_are_checked_when_they_are_read() -> None:
    with setting(MAX_RESULT_BYTE=1), pytest.raises(ImproperlyConfigured, match="did you mean 'MAX_RESULT_BYTES'"):
        conf.setting("MAX_PAGE_SIZE")
    for name, value in {"MAX_PAGE_SIZE": "ten", "STATELESS": 1, "ALLOWED_ORIGINS": "x", "DISPATCH_TIMEOUT": 0}.items():
        with setting(**{name: value}), pytest.raises(ImproperlyConfigured, match="it must be"):
            conf.setting(name)
    for name in ("UNKNOWN_ARGUMENTS", "DEFAULT_OUTPUT_FORMAT", "ON_STORE_DOWN"):
        with setting(**{name: "perhaps"}), pytest.raises(ImproperlyConfigured, match="it must be"):
            conf.setting(name)
    with override_settings(MCPACE=None):
        assert conf.setting("MAX_PAGE_SIZE") == 100
    with override_settings(MCPACE=["SERVER"]), pytest.raises(ImproperlyConfigured, match="a dictionary"):
        conf.check()


def test_hosts_that_the_command_cannot_know_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    with override_settings(ALLOWED_HOSTS=["shop.example", ".wide.example"]):
        assert command._hosts() == ("shop.example", "wide.example")
    assert "of .wide.example in ALLOWED_HOSTS only wide.example is known" in capsys.readouterr().err


# Resources and prompts -----------------------------------------------------------------------------------------------


def test_resources_and_prompts_are_guarded(token: Any) -> None:
    def one(*, pk: int, user: Any) -> Any:
        return User.objects.filter(pk=pk) if user.is_superuser else User.objects.none()

    class Shown(serializers.ModelSerializer):
        class Meta:
            model = User
            fields = ("username",)

    def resources(made: MCPServer) -> MCPServer:
        spec = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=one, output_serializer=Shown)
        made.register_resource(name="user", uri_template="users://{pk}", selector=spec, permissions=[IsAuthenticated])
        every = SelectorSpec(kind=SelectorKind.LIST, selector=User.objects.all, output_serializer=Shown)
        made.register_resource(name="users", uri_template="users://all", selector=every, permissions=[IsAuthenticated])
        made.register_prompt(name="greet", render=lambda name: f"Greet {name}.", permissions=[IsAuthenticated])
        return made

    with served(resources(server())) as port:
        client = Wire(port)
        read = client.request("resources/read", {"uri": f"users://{USER.pk}"})
        assert json.loads(read["result"]["contents"][0]["text"]) == {"username": "root"}
        assert client.request("resources/read", {"uri": "users://987654321"})["error"]["code"] == -32602
        everybody = client.request("resources/read", {"uri": "users://all"})
        assert {"username": "root"} in json.loads(everybody["result"]["contents"][0]["text"])
        prompt = client.request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        assert prompt["result"]["messages"][0]["content"]["text"] == "Greet Ada."
    with served(resources(server(user=False))) as port:
        client = Wire(port)
        for method, params in (
            ("resources/read", {"uri": f"users://{USER.pk}"}),
            ("resources/read", {"uri": "users://all"}),
            ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
        ):
            assert client.request(method, params)["error"]["code"] == -32003, method


def test_a_resource_whose_variables_are_not_its_selectors_is_refused() -> None:
    spec = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=lambda *, pk: None)
    for template in ("users://{name}", "users://all", "users://{user}"):
        with pytest.raises(Exception, match="resource 'user'"):
            server().register_resource(name="user", uri_template=template, selector=spec, permissions=[])


def test_a_request_is_a_request_only_when_somebody_looks() -> None:
    made = server()
    seen: list[Any] = []
    spec = ServiceSpec(service=lambda *, request: seen.append(request) or {})
    made.register_service_tool(name="who", spec=spec, permissions=[])
    made.call_tool("who")
    assert seen[0]._made is None
    assert isinstance(seen[0]._request, HttpRequest)
    assert seen[0].query_params == {}
    assert seen[0].META["REQUEST_METHOD"] == "POST"
    assert not [name for name in seen[0].META if name.startswith("HTTP_")]


def test_caches_with_connections_are_let_go_after_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.cache.backends.locmem import LocMemCache

    class Connected(LocMemCache):
        closed: ClassVar[list[str]] = []

        def close(self, **_: Any) -> None:
            self.closed.append("closed")

    monkeypatch.setattr("django.core.cache.backends.locmem.ConnectedCache", Connected, raising=False)
    made = server()
    spec = ServiceSpec(service=lambda: {"was": cache.get("nothing")})
    made.register_service_tool(name="who", spec=spec, permissions=[])
    caches = {"default": {"BACKEND": "django.core.cache.backends.locmem.ConnectedCache"}}
    # Not through a view, because Django closes connections after its requests.
    with override_settings(CACHES=caches), served(made) as port:
        assert Wire(port).call("who")["structuredContent"] == {"was": None}
    assert Connected.closed
