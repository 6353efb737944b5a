"""Hostile callers of a Django server, and misbehaving code of authors."""

from __future__ import annotations

import json
import logging
import sys
import threading
import types
from typing import Any

import pytest

from support.django_project import USER, server, setting
from support.python_server import Client, served

# isort: split
from django.contrib.auth.models import AnonymousUser, User
from django.core import exceptions as core_exceptions
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, models
from django.test import Client as DjangoClient
from django.test import override_settings
from django.urls import path
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework_services import SelectorKind, SelectorSpec, ServiceError, ServiceSpec

from invoices.models import Customer
from mcpace.django import AllowAny, CacheRateLimit, MCPServer, ScopeRequired, TokenBackend
from mcpace.django.limits import LimitExceeded
from mcpace.django.permissions import Forbidden
from mcpace.server.auth import tokens
from mcpace.server.auth.guards import RateLimit
from mcpace.server.auth.tokens import StaticTokenVerifier
from mcpace.server.errors import MCPError, RegistrationError, ToolError, UnexpectedToolError
from mcpace.server.running.addresses import Address
from mcpace.server.running.errors import UsageProblem
from mcpace.server.running.in_process import HttpServer
from mcpace.server.running.settings import Settings
from mcpace.testing import connect_sync

FORBIDDEN, LIMITED = -32003, -32004


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    cache.clear()


def service(function: Any, *, of: MCPServer | None = None, **options: Any) -> MCPServer:
    fields = ServiceSpec.__dataclass_fields__
    spec = {key: options.pop(key) for key in list(options) if key in fields}
    made = of or server()
    made.register_service_tool(
        name="t", spec=ServiceSpec(service=function, **{"permission_classes": []} | spec), **options
    )
    return made


def refused(made: MCPServer, arguments: dict[str, Any] | None = None, **on: Any) -> dict[str, Any]:
    with pytest.raises(ToolError) as raised:
        made.call_tool("t", arguments or {}, **on)
    error: dict[str, Any] = json.loads(str(raised.value))["error"]
    return error


class Number(serializers.Serializer):
    n = serializers.IntegerField()


class Name(serializers.ModelSerializer):
    class Meta:
        model = Customer
        fields = ("name",)


# Arguments that nobody asked for -------------------------------------------------------------------------------------


def test_passed_on_arguments_forge_nothing() -> None:
    """A caller can inject neither a row nor validated data into a service, nor values of read-only fields."""

    class Order(serializers.Serializer):
        n = serializers.IntegerField(source="pieces", required=False)
        owner = serializers.CharField(read_only=True, source="owner_id")

    def told(*, data: Any = None, instance: Any = None, serializer: Any = None, result: Any = None) -> dict[str, Any]:
        return {"seen": [data, instance, serializer, result]}

    forged = {"data": "raw", "instance": "forged", "serializer": "forged", "result": "forged"}
    bare = service(told, unknown_arguments="passthrough")
    assert bare.call_tool("t", forged).structured_content == {"seen": [None, None, None, None]}

    def ordered(*, pieces: Any = None, owner: Any = None, owner_id: Any = None, note: Any = None) -> dict[str, Any]:
        return {"seen": [pieces, owner, owner_id, note]}

    made = service(ordered, input_serializer=Order, partial=True, unknown_arguments="passthrough")
    arguments = {"pieces": "many", "owner": "eve", "owner_id": 7, "note": "hello"}
    assert made.call_tool("t", arguments).structured_content == {"seen": [None, None, None, "hello"]}
    assert made.call_tool("t", {"n": "2"}).structured_content == {"seen": [2, None, None, None]}


def test_a_header_has_one_spelling() -> None:
    """``X_Auth_User`` and ``X-Auth-User`` would be one key in ``META``, and a proxy checks only one of them."""
    made = service(lambda *, request: {"who": request.META.get("HTTP_X_AUTH_USER")})
    with served(made) as port:
        assert Client(port, headers={"X_Auth_User": "eve"}).call("t")["structuredContent"] == {"who": None}
        both = {"X-Auth-User": "ada", "X_Auth_User": "eve"}
        assert Client(port, headers=both).call("t")["structuredContent"] == {"who": "ada"}


# Permissions and limits ----------------------------------------------------------------------------------------------


class OnlyRoot(BasePermission):
    def has_permission(self, request: Any, view: Any) -> bool:
        return bool(request.user.is_superuser)


def test_who_may_not_call_uses_up_nobodys_limit() -> None:
    limit = CacheRateLimit("2/hour", by="everyone")
    made = service(lambda *, n: {"n": n}, input_serializer=Number, permission_classes=[OnlyRoot], rate_limits=[limit])
    for _ in range(3):
        with pytest.raises(Forbidden):
            made.call_tool("t", {"n": 1}, user=AnonymousUser())
        assert refused(made, {"nothing": 1}, user=USER)["type"] == "validation_error"
    assert made.call_tool("t", {"n": 1}, user=USER).structured_content == {"n": 1}


def test_who_may_not_read_uses_up_nobodys_limit() -> None:
    allowed = [False]

    class Sometimes(BasePermission):
        def has_permission(self, request: Any, view: Any) -> bool:
            return allowed[0]

    made = server()
    options: dict[str, Any] = {"permissions": [Sometimes], "rate_limits": [CacheRateLimit("1/hour", by="everyone")]}
    spec = SelectorSpec(kind=SelectorKind.LIST, selector=Customer.objects.all, output_serializer=Name)
    made.register_resource(name="all", uri_template="customers://all", selector=spec, **options)
    made.register_prompt(name="greet", render=lambda: "Hello.", **options)
    uses = (("resources/read", {"uri": "customers://all"}), ("prompts/get", {"name": "greet"}))
    with served(made) as port:
        for method, params in uses:
            allowed[0] = False
            assert Client(port).request(method, params)["error"]["code"] == FORBIDDEN
            allowed[0] = True
            assert "result" in Client(port).request(method, params)
            assert Client(port).request(method, params)["error"]["code"] == LIMITED


def test_a_limit_of_everyones_that_strangers_could_use_up_is_refused() -> None:
    everyone = RateLimit("10/hour", by="everyone")
    with pytest.raises(RegistrationError, match="use it up for all"):
        service(lambda: {}, permission_classes=[OnlyRoot], rate_limits=[everyone])
    service(lambda: {}, permissions=[ScopeRequired("write")], rate_limits=[everyone])
    service(lambda: {}, permission_classes=[OnlyRoot], rate_limits=["10/hour"])
    # A rate limit of the server also counts before permission classes are checked.
    made = server(rate_limits=everyone)
    for register in (made.register_service_tool, made.register_selector_tool):
        options: dict[str, Any] = {"name": "t", "permissions": [OnlyRoot]}
        if register == made.register_service_tool:
            options["spec"] = ServiceSpec(service=lambda: {})
        else:
            options["spec"] = SelectorSpec(
                kind=SelectorKind.LIST, selector=Customer.objects.all, output_serializer=Name
            )
        with pytest.raises(RegistrationError, match="the server's RateLimit by everyone"):
            register(**options)
    with pytest.raises(RegistrationError, match="the server's RateLimit by everyone"):
        made.register_prompt(name="p", render=lambda: "Hello.", permissions=[OnlyRoot])
    service(lambda: {}, permissions=[ScopeRequired("write")], of=server(rate_limits=everyone))


@pytest.mark.parametrize("limit", ["1/hour", RateLimit("1/hour"), CacheRateLimit("1/hour"), ["1/hour"]])
def test_one_limit_need_be_no_list(limit: Any) -> None:
    made = service(lambda: {"n": 1}, rate_limits=limit)
    assert made.call_tool("t", user=USER)
    with pytest.raises((MCPError, LimitExceeded)):
        made.call_tool("t", user=USER)


@pytest.mark.parametrize("limit", [7, {"1/hour": 1}, [7]])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises(RegistrationError, match="rate_limits of tool 't'"):
        service(lambda: {"n": 1}, rate_limits=limit)


@pytest.mark.parametrize("denial", [core_exceptions.PermissionDenied, PermissionDenied, NotAuthenticated])
def test_a_denial_of_the_authors_is_the_same_in_process(denial: type[Exception]) -> None:
    def deny() -> None:
        raise denial("the vault is closed")

    made = service(deny)
    with served(made) as port:
        told = Client(port).call("t")["error"]
    with pytest.raises(MCPError) as raised:
        made.call_tool("t", user=USER)
    assert (raised.value.error.code, raised.value.error.message) == (told["code"], told["message"])
    assert told["code"] == FORBIDDEN and isinstance(raised.value.__cause__, denial)


async def passing(surroundings: Any, call_next: Any) -> Any:
    return await call_next(surroundings)


def test_denials_pass_through_middleware(caplog: pytest.LogCaptureFixture) -> None:
    def with_middleware(user: bool = True) -> MCPServer:
        return server(user=user, middleware=[passing])

    who = service(lambda *, user: {"user": user.username}, of=with_middleware())
    denied = service(lambda: {}, of=with_middleware(user=False), permission_classes=[IsAuthenticated])
    limited = service(lambda: {}, of=with_middleware(), rate_limits=[CacheRateLimit("1/hour")])
    with caplog.at_level(logging.ERROR, "mcpace.server"):
        with served(who) as port:
            assert Client(port).call("t")["structuredContent"] == {"user": "root"}
        with served(denied) as port:
            client = Client(port)
            assert client.call("t")["error"]["code"] == FORBIDDEN
            assert client.status == 403
        with served(limited) as port:
            assert Client(port).call("t")["structuredContent"] == {}
            assert Client(port).call("t")["error"]["code"] == LIMITED
    assert caplog.text == ""


def mounted(made: MCPServer) -> Any:
    conf = types.ModuleType("conf")
    conf.urlpatterns = [path("mcp", made.urls)]  # type: ignore[attr-defined]
    return override_settings(ROOT_URLCONF=conf)


@pytest.mark.filterwarnings("ignore:mcpace")
def test_allow_any_serves_this_machine_only(caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    def status(auth: AllowAny, address: str) -> int:
        with mounted(service(lambda: {}, of=MCPServer("shop", auth=auth))):
            headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
            client = DjangoClient(REMOTE_ADDR=address, headers=headers)
            return int(client.post("/mcp", body, content_type="application/json").status_code)

    assert status(AllowAny(), "127.0.0.1") == status(AllowAny(), "::1") == 200
    with caplog.at_level(logging.WARNING, "mcpace.server"):
        assert [status(AllowAny(), address) for address in ("192.0.2.7", "")] == [403, 403]
    assert "192.0.2.7" in caplog.text
    assert status(AllowAny(beyond_loopback=True), "192.0.2.7") == 200


class Derived(StaticTokenVerifier):
    async def verify_token(self, token: str) -> Any:
        return await super().verify_token(token)


TOKENS = {"t": {"client_id": "app"}}


@pytest.mark.filterwarnings("ignore:mcpace")
@pytest.mark.parametrize(
    "make",
    [
        tokens.AllowAny,
        lambda **more: Derived(TOKENS, **more),
        lambda **more: TokenBackend(tokens.AllowAny(**more), user=lambda token: USER),
        lambda **more: TokenBackend(StaticTokenVerifier(TOKENS, **more)),
    ],
)
def test_verifiers_for_development_serve_this_machine_only(make: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    def status(made: MCPServer, address: str) -> int:
        with mounted(made):
            headers = {"Accept": "application/json", "Authorization": "Bearer t", "MCP-Protocol-Version": "2025-11-25"}
            client = DjangoClient(REMOTE_ADDR=address, headers=headers)
            return int(client.post("/mcp", body, content_type="application/json").status_code)

    near, everywhere = (service(lambda: {}, of=MCPServer("shop", auth=make(**on))) for on in ({}, BEYOND))
    assert (status(near, "127.0.0.1"), status(near, "192.0.2.7")) == (200, 403)
    assert status(everywhere, "192.0.2.7") == 200
    with pytest.raises(UsageProblem, match=r"0\.0\.0\.0 can't be listened on: \w+ is for development"):
        HttpServer(near.__mcpace__(), Settings(host="0.0.0.0"), Address("0.0.0.0", 0))
    assert everywhere.__mcpace__().loopback_only is None


BEYOND = {"beyond_loopback": True}


# Resources and prompts -----------------------------------------------------------------------------------------------


def resource(**spec: Any) -> Any:
    options = {key: spec.pop(key) for key in ("max_page_size", "max_result_bytes", "dispatch_timeout") if key in spec}
    made = server(permissions=())
    base = {"kind": SelectorKind.LIST, "selector": Customer.objects.all, "output_serializer": Name}
    variables = spec.pop("variables", "all")
    made.register_resource(
        name="customers",
        uri_template=f"customers://{variables}",
        selector=SelectorSpec(**base | {"permission_classes": []} | spec),
        **options,
    )
    return made


def read(made: MCPServer, uri: str = "customers://all") -> Any:
    with served(made) as port:
        reply = Client(port).request("resources/read", {"uri": uri})
    return json.loads(reply["result"]["contents"][0]["text"]) if "result" in reply else reply["error"]


def test_a_resources_preconditions_are_met() -> None:
    """A permission that could silently not run is refused at registration."""
    asked: list[Any] = []

    def closed(*, collection: Any = None, instance: Any = None) -> None:
        asked.append(collection if instance is None else instance)
        raise ServiceError("we are closed")

    assert "we are closed" in read(resource(preconditions=[closed]))["message"]
    ada, _ = Customer.objects.get_or_create(name="Ada")

    def one(*, pk: int) -> Any:
        return Customer.objects.filter(pk=pk)

    retrieving: dict[str, Any] = {"kind": SelectorKind.RETRIEVE, "selector": one, "variables": "{pk}"}
    made = resource(preconditions=[closed], **retrieving)
    assert "we are closed" in read(made, f"customers://{ada.pk}")["message"]
    assert asked[-1] == ada
    assert read(resource(**retrieving), "customers://987654")["code"] == -32602
    assert read(resource(allow_none=True, **retrieving), "customers://987654") is None


def test_resources_and_prompts_are_bounded() -> None:
    for n in range(12):
        Customer.objects.get_or_create(name=f"customer {n}")
    assert len(read(resource())) == Customer.objects.count()
    assert "more than 10 rows" in read(resource(max_page_size=10))["message"]
    with setting(MAX_PAGE_SIZE=10):
        assert "more than 10 rows" in read(resource())["message"]
    assert "too long" in read(resource(max_result_bytes=50))["message"]
    with setting(MAX_RESULT_BYTES=50):
        assert "too long" in read(resource())["message"]
        made = server()
        made.register_prompt(name="long", render=lambda: "x" * 100)
    with served(made) as port:
        assert "too long" in Client(port).request("prompts/get", {"name": "long"})["error"]["message"]


def test_a_resource_past_its_time_is_told_so() -> None:
    go_on = threading.Event()

    def waits() -> list[Any]:
        go_on.wait(30)
        return []

    try:
        assert "timed out" in read(resource(selector=waits, dispatch_timeout=0.2))["message"]
    finally:
        go_on.set()


def test_a_coroutine_function_is_a_prompt() -> None:
    made = server()

    async def greet(name: str) -> str:
        """Greets."""
        return f"Greet {name}, one of {await Customer.objects.acount()}."

    made.register_prompt(name="greet", render=greet, permissions=[IsAuthenticated])
    with served(made) as port:
        reply = Client(port).request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        assert reply["result"]["messages"][0]["content"]["text"].startswith("Greet Ada, one of ")
    nobodys = server(user=False)
    nobodys.register_prompt(name="greet", render=greet, permissions=[IsAuthenticated])
    with served(nobodys) as port:
        reply = Client(port).request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        assert reply["error"]["code"] == FORBIDDEN


# Serializers ---------------------------------------------------------------------------------------------------------


class Document(models.Model):
    file = models.FileField()

    class Meta:
        app_label = "invoices"
        managed = False


def shows(serializer: Any, **options: Any) -> MCPServer:
    def one() -> Any:
        return Document(pk=7, file="plan.pdf")

    made = server()
    spec = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=one, output_serializer=serializer, permission_classes=[])
    made.register_selector_tool(name="t", spec=spec, **options)
    return made


class Uploaded(serializers.ModelSerializer):
    url = serializers.HyperlinkedIdentityField(view_name="document")

    class Meta:
        model = Document
        fields = ("file", "url")


@pytest.mark.parametrize(
    ("resource_url", "root"), [(None, "http://localhost"), ("https://shop.example/mcp", "https://shop.example")]
)
def test_absolute_urls_are_those_that_clients_see(resource_url: str | None, root: str) -> None:
    conf = types.ModuleType("conf")
    conf.urlpatterns = [path("documents/<int:pk>", lambda request, pk: None, name="document")]  # type: ignore[attr-defined]
    with override_settings(ROOT_URLCONF=conf, MEDIA_URL="/files/"), setting(RESOURCE_URL=resource_url):
        made = shows(Uploaded)
        told = {"file": f"{root}/files/plan.pdf", "url": f"{root}/documents/7"}
        assert made.call_tool("t").structured_content == told
        with served(made) as port:
            shown = Client(port).call("t")["structuredContent"]
        own = f"http://127.0.0.1:{port}"
        assert shown == {key: url if resource_url else url.replace(root, own) for key, url in told.items()}


def test_a_serializer_that_raises_something_else_is_a_crash_and_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(serializers.Serializer):
        name = serializers.CharField()

        def validate(self, attrs: Any) -> Any:
            Customer.objects.create(name=attrs["name"])
            raise KeyError("the secret")

    made = service(lambda *, name: {}, input_serializer=Broken)
    with pytest.raises(UnexpectedToolError):
        made.call_tool("t", {"name": "half way"})
    with served(made) as port, caplog.at_level(logging.ERROR, "mcpace.server"):
        failed = Client(port).call("t", name="half way")
        # The next call finds the serializer in its initial state.
        assert Client(port).call("t", name="half way") == failed
    assert failed["isError"]
    assert "secret" not in json.dumps(failed)
    assert "the secret" in caplog.text
    assert not Customer.objects.filter(name="half way").exists()


def test_an_upload_is_no_argument() -> None:
    """A model can't send a file, so a file field refuses any value."""

    class Upload(serializers.Serializer):
        file = serializers.FileField()

    made = service(lambda *, file: {"name": file.name}, input_serializer=Upload)
    assert refused(made, {"file": "plan.pdf"})["detail"].keys() == {"file"}
    assert made.call_tool("t", {"file": SimpleUploadedFile("a", b"x")}).structured_content == {"name": "a"}


def test_what_rest_framework_lets_an_author_refuse_is_told() -> None:
    class SoldOut(APIException):
        status_code = 409
        default_detail = "There are none left."
        default_code = "sold_out"

    class Broken(APIException):
        default_detail = "the secret"

    def raises(error: Exception) -> MCPServer:
        def run() -> None:
            raise error

        return service(run)

    assert refused(raises(SoldOut())) == {"type": "sold_out", "message": "There are none left."}
    fields = refused(raises(SoldOut({"n": ["None left."]})))
    assert (fields["type"], fields["detail"]) == ("sold_out", {"n": ["None left."]})
    with pytest.raises(UnexpectedToolError, match=r"^Error executing tool t$"):
        raises(Broken()).call_tool("t")


# Pages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        (lambda: User.objects.all(), '"id" ASC'),
        (lambda: User.objects.order_by("-last_name"), '"last_name" DESC, "auth_user"."id" ASC'),
        (lambda: User.objects.order_by("-pk"), '"id" DESC'),
        (lambda: User.objects.annotate(n=models.Count("groups")), '"id" ASC'),
        (lambda: User.objects.order_by("last_name").distinct("last_name"), None),
    ],
)
def test_pages_are_of_rows_in_an_order(rows: Any, order: str | None) -> None:
    """Without a total order, a row could be on two pages, and another on none."""

    class Shown(serializers.ModelSerializer):
        class Meta:
            model = User
            fields = ("username",)

    found: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        found.append(sql)
        return execute(sql, *rest)

    made = server()
    spec = SelectorSpec(kind=SelectorKind.LIST, selector=rows, output_serializer=Shown, permission_classes=[])
    made.register_selector_tool(name="t", spec=spec, paginate=True)
    if order is None:
        # DISTINCT ON is PostgreSQL's alone, and its order is left unchanged.
        with pytest.raises(UnexpectedToolError):
            made.call_tool("t")
        return
    with connection.execute_wrapper(note):
        made.call_tool("t")
    assert found[-1].rpartition("ORDER BY ")[2].rpartition(" LIMIT")[0].endswith(order)


def test_an_option_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'rate_limit'"):
        service(lambda: {}, rate_limit="1/s")
    with pytest.raises(TypeError, match="auth=TokenBackend"):
        server(token_verifier=object())


@pytest.mark.parametrize("value", ["a\r\nX-Injected: yes", "a\nb", "nul\0", "\u2603"])
def test_a_header_that_http_does_not_allow_is_a_bad_request(value: str) -> None:
    with mounted(service(lambda: 1)):
        answer = DjangoClient().post("/mcp", b"{}", content_type="application/json", headers={"X-Odd": value})
    assert answer.status_code == 400
    assert answer.content == b"the header X-Odd has characters that HTTP does not allow"


def test_a_test_without_a_database_is_told_what_to_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-django raises this where a test has no mark; its module stands in for it here."""

    def blocked() -> int:
        raise RuntimeError('Database access not allowed, use the "django_db" mark, or the "db" fixture to enable it.')

    made = service(blocked)
    with connect_sync(made) as client:
        assert client.call_tool("t", {}).is_error
        monkeypatch.setitem(sys.modules, "pytest_django", types.ModuleType("pytest_django"))
        with pytest.raises(MCPError, match=r"mark it @pytest\.mark\.django_db\(transaction=True\)"):
            client.call_tool("t", {})
