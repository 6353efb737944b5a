"""Specs as tools: arguments, permissions, transactions and results for a client of the runtime."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from support.django_project import USER, server, setting

# isort: split
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection, connections, transaction
from rest_framework import serializers
from rest_framework.permissions import AllowAny as LetsAll
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework_services import SelectorKind, SelectorSpec, ServiceError, ServiceSpec

from invoices.filters import InvoiceFilter
from invoices.models import Customer, Invoice
from invoices.serializers import InvoiceOutput
from mcpace.django import AllowAny, DjangoPermRequired, MCPServer, Principal, ScopeRequired
from mcpace.django.permissions import Forbidden
from mcpace.server.errors import MCPError, RegistrationError, ToolError, UnexpectedToolError
from support.django_services import double, refused, service
from support.python_server import Client, served

FORBIDDEN = -32003


class Number(serializers.Serializer):
    n = serializers.IntegerField(min_value=0)


class Name(serializers.Serializer):
    name = serializers.CharField(max_length=80)


def test_a_service_is_called_with_what_its_serializer_validated() -> None:
    made = service(double, input_serializer=Number)
    result = made.call_tool("t", {"n": "21"})
    assert result.structured_content == {"doubled": 42}
    assert json.loads(result.content[0].text) == {"doubled": 42}
    listed = made.registry.tools["t"].listed()
    assert listed["inputSchema"]["properties"]["n"]["type"] == "integer"
    assert listed["inputSchema"]["required"] == ["n"]
    assert listed["inputSchema"]["additionalProperties"] is False


@pytest.mark.parametrize("n", [-1, "x", None])
def test_what_a_serializer_refuses_is_told_by_field(n: Any) -> None:
    error = refused(service(double, input_serializer=Number), {"n": n})
    assert error["type"] == "validation_error"
    assert list(error["detail"]) == ["n"]


def test_over_http_the_runtime_answers_the_same() -> None:
    made = service(double, input_serializer=Number)
    with served(made) as port:
        client = Client(port)
        assert client.call("t", n=4)["structuredContent"] == {"doubled": 8}
        failed = client.call("t", n="x")
        assert failed["isError"]
        assert json.loads(failed["content"][0]["text"])["error"]["detail"] == {"n": ["A valid integer is required."]}


# Unknown arguments ---------------------------------------------------------------------------------------------------


def test_unknown_arguments_are_refused_ignored_or_passed() -> None:
    def told(*, n: int, **others: Any) -> dict[str, Any]:
        return {"n": n, "extra": others.get("extra")}

    error = refused(service(told, input_serializer=Number), {"n": 1, "extra": 2})
    assert "extra" in error["detail"]
    ignoring = service(told, input_serializer=Number, unknown_arguments="ignore")
    assert ignoring.call_tool("t", {"n": 1, "extra": 2}).structured_content == {"n": 1, "extra": None}
    passing = service(told, input_serializer=Number, unknown_arguments="passthrough")
    assert passing.call_tool("t", {"n": 1, "extra": 2}).structured_content == {"n": 1, "extra": 2}
    with setting(UNKNOWN_ARGUMENTS="ignore"):
        assert service(told, input_serializer=Number).call_tool("t", {"n": 1, "extra": 2}).structured_content


@pytest.mark.parametrize("policy", ["ignore", "passthrough", "reject"])
def test_no_argument_takes_a_seeds_place(policy: str) -> None:
    def who(*, user: Any, **others: Any) -> dict[str, Any]:
        return {"user": str(user), "superuser": others.get("is_admin", False)}

    made = service(who, input_serializer=Number, unknown_arguments=policy)
    arguments = {"n": 1, "user": "somebody else", "request": "forged"}
    if policy == "reject":
        assert set(refused(made, arguments)["detail"]) == {"user", "request"}
    else:
        assert made.call_tool("t", arguments, user=USER).structured_content["user"] == "root"


# Keywords ------------------------------------------------------------------------------------------------------------


def test_a_service_names_what_it_wants() -> None:
    def all_of_it(
        *, data: Any, user: Any, request: Any, view: Any, progress: Any, tenant: str, n: int
    ) -> dict[str, Any]:
        progress(1, total=2)
        return {
            "data": dict(data), "n": n, "user": user.username, "method": request.method, "sent": request.data,
            "action": view.action, "tenant": tenant, "same": request.user is user,
        }  # fmt: skip

    made = server(pool_seeds={"tenant": lambda user: f"tenant of {user.username}"})
    service(all_of_it, of=made, input_serializer=Number)
    with served(made) as port:
        assert Client(port).call("t", n=3)["structuredContent"] == {
            "data": {"n": 3}, "n": 3, "user": "root", "method": "POST", "sent": {"n": 3}, "action": "t",
            "tenant": "tenant of root", "same": True,
        }  # fmt: skip


def test_a_request_has_the_headers() -> None:
    made = service(lambda *, request: {"agent": request.META.get("HTTP_USER_AGENT"), "get": dict(request.query_params)})
    with served(made) as port:
        client = Client(port, headers={"User-Agent": "probe"})
        assert client.call("t")["structuredContent"] == {"agent": "probe", "get": {}}


def test_what_is_set_on_a_request_is_that_calls_own() -> None:
    def sets(*, request: Any) -> dict[str, Any]:
        before = [request.method, request.version, dict(request._files), request.content_type, request.parsers]
        request.method, request.version, request.parsers = "PUT", "2", [1]
        request._files["a"] = 1
        return {"before": before, "after": [request.method, request.version]}

    made = service(sets)
    for _ in range(2):
        before = ["POST", None, {}, "application/json", ()]
        assert made.call_tool("t").structured_content == {"before": [*before[:4], []], "after": ["PUT", "2"]}


def test_a_keyword_that_nothing_fills_is_refused_at_registration() -> None:
    with pytest.raises(RegistrationError, match="wants price, which nothing fills"):
        service(lambda *, n, price: None, input_serializer=Number)
    with pytest.raises(RegistrationError, match="pool_seeds"):
        server(pool_seeds={"user": lambda: None})


def test_a_service_without_a_serializer_takes_no_arguments_unless_it_spreads() -> None:
    def plain(*, n: int = 1) -> dict[str, int]:
        return {"n": n}

    assert refused(service(plain), {"n": 5})["detail"]
    spread = service(plain, argument_binding="spread_author_wins")
    assert spread.call_tool("t", {"n": 5}).structured_content == {"n": 5}
    assert refused(spread, {"n": "five"})["type"] == "validation_error"


def test_a_providers_value_outranks_the_callers_and_preconditions_see_it() -> None:
    def precondition(*, n: int) -> None:
        if n == 99:
            raise ServiceError("not with 99")

    made = service(double, input_serializer=Number, kwargs=lambda request: {"n": 99}, preconditions=[precondition])
    assert refused(made, {"n": 1}) == {"type": "service_error", "message": "not with 99"}


# Permissions ---------------------------------------------------------------------------------------------------------


def test_a_spec_without_permissions_is_refused_at_registration() -> None:
    with pytest.raises(RegistrationError, match="has no permissions"):
        service(double, input_serializer=Number, permission_classes=None)
    service(double, input_serializer=Number, permission_classes=None, permissions=[IsAuthenticated])
    with setting(REQUIRE_TOOL_PERMISSIONS=False):
        service(double, input_serializer=Number, permission_classes=None)


def test_permission_classes_are_asked_with_user_and_arguments() -> None:
    class OnlySmall(BasePermission):
        message = "only small numbers"

        def has_permission(self, request: Any, view: Any) -> bool:
            return request.data["n"] < 10 and view.action == "t"

    made = service(double, input_serializer=Number, permission_classes=[IsAuthenticated, OnlySmall])
    assert made.call_tool("t", {"n": 1}, user=USER).structured_content == {"doubled": 2}
    with pytest.raises(Forbidden, match="only small numbers"):
        made.call_tool("t", {"n": 10}, user=USER)
    with served(made) as port:
        error = Client(port).call("t", n=10)["error"]
        assert (error["code"], error["message"]) == (FORBIDDEN, "only small numbers")
    nobodys = service(double, of=server(user=False), input_serializer=Number, permission_classes=[IsAuthenticated])
    with served(nobodys) as port:
        assert Client(port).call("t", n=1)["error"]["code"] == FORBIDDEN


def test_only_the_permission_that_lets_everybody_pass_is_not_asked() -> None:
    class Nearly(LetsAll):
        def has_permission(self, request: Any, view: Any) -> bool:
            return bool(request.data["n"] == 1)

    made = service(double, input_serializer=Number, permission_classes=[LetsAll])
    assert made.registry.tools["t"].runs._permissions == ()
    assert made.call_tool("t", {"n": 2}, user=AnonymousUser()).structured_content == {"doubled": 4}
    for classes in ([LetsAll, IsAuthenticated], [LetsAll & IsAuthenticated], [Nearly]):
        made = service(double, input_serializer=Number, permission_classes=classes)
        with pytest.raises(Forbidden):
            made.call_tool("t", {"n": 2}, user=AnonymousUser())
    assert made.call_tool("t", {"n": 1}, user=AnonymousUser()).structured_content == {"doubled": 2}


def test_djangos_permissions_are_asked() -> None:
    clerk = User.objects.create_user("clerk")
    made = service(double, input_serializer=Number, permissions=[DjangoPermRequired("invoices.add_invoice")])
    assert made.call_tool("t", {"n": 1}, user=USER).structured_content
    for user in (clerk, AnonymousUser()):
        with pytest.raises(Forbidden, match=r"invoices\.add_invoice"):
            made.call_tool("t", {"n": 1}, user=user)


def test_a_permission_is_made_for_each_call() -> None:
    class Counts(BasePermission):
        def __init__(self) -> None:
            self.asked = 0

        def has_permission(self, request: Any, view: Any) -> bool:
            self.asked += 1
            return self.asked == 1

    made = service(double, input_serializer=Number, permission_classes=[Counts])
    for _ in range(3):
        assert made.call_tool("t", {"n": 1}).structured_content


def test_a_call_in_this_process_is_on_a_principals_behalf() -> None:
    made = service(lambda *, user: {"user": user.username}, permissions=[ScopeRequired("write")])
    clerk = User.objects.create_user("principal")
    writer = Principal(user=clerk, scopes=("write",))
    assert made.call_tool("t", principal=writer).structured_content == {"user": "principal"}
    for principal in (None, Principal(user=clerk, scopes=("read",))):
        with pytest.raises(MCPError) as refused:
            made.call_tool("t", principal=principal)
        assert refused.value.data == {"requiredScopes": ["write"]}


def users(*names: str) -> list[Any]:
    return [User.objects.get_or_create(username=name)[0] for name in names]


@pytest.mark.parametrize("way", ["user", "principal", "request"])
def test_a_call_in_this_process_counts_for_its_caller(way: str) -> None:
    """Not for all of them together."""
    made = service(lambda *, user: {"user": user.username}, rate_limits=["1/hour"])
    one, other = users("one", "other")

    def named(user: Any) -> dict[str, Any]:
        return {way: {"user": user, "principal": Principal(user=user), "request": SimpleNamespace(user=user)}[way]}

    for user in (one, other):
        assert made.call_tool("t", **named(user)).structured_content == {"user": user.username}
    with pytest.raises(MCPError, match="too many requests"):
        made.call_tool("t", **named(one))


def test_a_call_in_this_process_is_on_behalf_of_one() -> None:
    made = service(lambda *, user: {"user": user.username})
    one, other = users("one", "other")
    for on in (
        {"user": one, "request": SimpleNamespace(user=other)},
        {"user": one, "principal": Principal(user=other)},
        {"principal": Principal(user=one), "request": SimpleNamespace(user=AnonymousUser())},
    ):
        with pytest.raises(TypeError, match="on behalf of two"):
            made.call_tool("t", **on)
    same = {"user": one, "principal": Principal(user=one), "request": SimpleNamespace(user=one)}
    assert made.call_tool("t", **same).structured_content == {"user": "one"}


@pytest.mark.filterwarnings("ignore:mcpace")
def test_who_acts_is_asked_only_where_somebody_wants_to_know(django_queries: list[str]) -> None:
    asked: list[str] = []

    def acting() -> Any:
        asked.append("asked")
        return USER

    made = MCPServer("shop", auth=AllowAny(user=acting))
    service(double, of=made, input_serializer=Number, atomic=False)
    service(lambda *, user: {"user": user.username}, "who", of=made, atomic=False)
    assert made.call_tool("t", {"n": 1}).structured_content == {"doubled": 2}
    assert (asked, django_queries) == ([], [])
    assert made.call_tool("who").structured_content == {"user": "root"}
    assert asked == ["asked"]


def test_what_is_no_permission_is_refused() -> None:
    with pytest.raises(RegistrationError, match="is no permission"):
        service(double, input_serializer=Number, permissions=[Number])
    with pytest.raises(Exception, match="name a scope"):
        ScopeRequired([])
    with pytest.raises(Exception, match="name a permission"):
        DjangoPermRequired([])


# Transactions --------------------------------------------------------------------------------------------------------


def adds_and_fails(*, name: str) -> None:
    Customer.objects.create(name=name)
    raise RuntimeError(f"the secret of {name}")


def test_an_atomic_service_that_fails_leaves_nothing_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    made = service(adds_and_fails, input_serializer=Name)
    with served(made) as port, caplog.at_level(logging.ERROR, "mcpace.server"):
        failed = Client(port).call("t", name="atomic")
    assert failed["isError"]
    assert "secret" not in json.dumps(failed)
    assert "secret" in caplog.text
    assert not Customer.objects.filter(name="atomic").exists()


def test_a_service_that_is_not_atomic_keeps_what_it_wrote() -> None:
    made = service(adds_and_fails, input_serializer=Name, atomic=False)
    with served(made) as port:
        assert Client(port).call("t", name="kept")["isError"]
    assert Customer.objects.filter(name="kept").exists()


def test_what_is_refused_on_purpose_is_rolled_back_too_and_told() -> None:
    def refuses(*, name: str) -> None:
        Customer.objects.create(name=name)
        raise ServiceError("we are closed")

    made = service(refuses, input_serializer=Name)
    with served(made) as port:
        failed = Client(port).call("t", name="closed")
    assert json.loads(failed["content"][0]["text"]) == {"error": {"type": "service_error", "message": "we are closed"}}
    assert not Customer.objects.filter(name="closed").exists()


def test_a_result_that_cannot_be_shown_takes_the_work_back() -> None:
    class Broken(serializers.Serializer):
        missing = serializers.CharField()

    def adds(*, name: str) -> Customer:
        return Customer.objects.create(name=name)

    shown = SelectorSpec(kind=SelectorKind.RETRIEVE, output_serializer=Broken)
    made = service(adds, input_serializer=Name, output_selector_spec=shown)
    with pytest.raises(UnexpectedToolError):
        made.call_tool("t", {"name": "unshown"})
    assert not Customer.objects.filter(name="unshown").exists()


def test_selectors_have_no_transaction_of_their_own_and_services_do() -> None:
    def where() -> dict[str, bool]:
        return {"atomic": connection.in_atomic_block}

    made = service(where)
    spec = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=where, permission_classes=[])
    made.register_selector_tool(name="read", spec=spec)
    with served(made) as port:
        assert Client(port).call("t")["structuredContent"] == {"atomic": True}
        assert Client(port).call("read")["structuredContent"] == {"atomic": False}


def test_atomic_requests_are_a_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def where() -> dict[str, bool]:
        return {"atomic": connection.in_atomic_block}

    @transaction.non_atomic_requests
    def exempt() -> dict[str, bool]:
        return {"atomic": connection.in_atomic_block}

    async def elsewhere() -> dict[str, Any]:
        from asgiref.sync import sync_to_async

        return {"atomic": await sync_to_async(lambda: connection.in_atomic_block)()}

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    made = service(where, atomic=False)
    service(exempt, "exempt", of=made, atomic=False)
    service(elsewhere, "async", of=made, atomic=False)
    spec = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=where, permission_classes=[])
    made.register_selector_tool(name="read", spec=spec)
    with served(made) as port:
        found = {name: Client(port).call(name)["structuredContent"]["atomic"] for name in made.registry.tools}
    assert found == {"t": True, "exempt": False, "async": True, "read": True}


# Asynchronous services -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("atomic", [True, False])
def test_an_asynchronous_service_is_rolled_back_where_it_is_atomic(atomic: bool) -> None:
    async def adds(*, name: str) -> dict[str, Any]:
        await Customer.objects.acreate(name=name)
        await asyncio.sleep(0)
        if name.startswith("bad"):
            raise RuntimeError("no")
        return {"count": await Customer.objects.filter(name=name).acount()}

    made = service(adds, input_serializer=Name, atomic=atomic)
    with served(made) as port:
        assert Client(port).call("t", name=f"good {atomic}")["structuredContent"] == {"count": 1}
        assert Client(port).call("t", name=f"bad {atomic}")["isError"]
    assert Customer.objects.filter(name=f"bad {atomic}").exists() is not atomic


def test_in_process_calls_run_in_the_callers_transaction() -> None:
    made = service(lambda *, name: {"id": Customer.objects.create(name=name).pk}, input_serializer=Name)
    with transaction.atomic():
        made.call_tool("t", {"name": "inside"})
        transaction.set_rollback(True)
    assert not Customer.objects.filter(name="inside").exists()
    assert asyncio.run(made.acall_tool("t", {"name": "outside"})).structured_content
    assert Customer.objects.filter(name="outside").exists()


# Rows, results, bounds -----------------------------------------------------------------------------------------------


def test_a_service_is_about_a_row() -> None:
    class Mine(BasePermission):
        def has_object_permission(self, request: Any, view: Any, obj: Any) -> bool:
            return obj.name != "forbidden"

    def rename(*, instance: Customer, name: str) -> Customer:
        instance.name = name
        instance.save()
        return instance

    def by_id(*, pk: int) -> Any:
        return Customer.objects.filter(pk=pk)

    class Shown(serializers.ModelSerializer):
        class Meta:
            model = Customer
            fields = ("id", "name")

    row = SelectorSpec(kind=SelectorKind.RETRIEVE, selector=by_id)
    shown = SelectorSpec(kind=SelectorKind.RETRIEVE, output_serializer=Shown)
    made = service(
        rename, input_serializer=Name, instance_selector_spec=row, output_selector_spec=shown, permission_classes=[Mine]
    )
    known, kept = Customer.objects.create(name="before"), Customer.objects.create(name="forbidden")
    assert set(made.registry.tools["t"].listed()["inputSchema"]["required"]) == {"pk", "name"}
    result = made.call_tool("t", {"pk": known.pk, "name": "after"})
    assert result.structured_content == {"id": known.pk, "name": "after"}
    assert refused(made, {"pk": 10**9, "name": "x"})["type"] == "not_found"
    assert refused(made, {"pk": "x", "name": "x"})["detail"].keys() == {"pk"}
    with pytest.raises(Forbidden):
        made.call_tool("t", {"pk": kept.pk, "name": "taken"})


def test_what_may_be_null_is_said_in_the_schema() -> None:
    spec = SelectorSpec(kind=SelectorKind.LIST, selector=Invoice.objects.all, output_serializer=InvoiceOutput)
    made = server()
    made.register_selector_tool(name="t", spec=spec, permissions=[], paginate=True)
    item = made.registry.tools["t"].listed()["outputSchema"]["properties"]["items"]["items"]
    assert item["properties"]["due"]["type"] == ["string", "null"]


def test_a_result_over_its_bound_is_an_error_and_leaves_nothing() -> None:
    def much(*, name: str) -> dict[str, str]:
        Customer.objects.create(name=name)
        return {"text": "x" * 2000}

    made = service(much, input_serializer=Name, max_result_bytes=1000)
    with served(made) as port:
        failed = Client(port).call("t", name="too much")
    assert failed["isError"]
    assert "too long" in failed["content"][0]["text"]
    assert not Customer.objects.filter(name="too much").exists()


def test_a_service_past_its_time_is_told_so() -> None:
    go_on = threading.Event()
    made = service(lambda: {"waited": go_on.wait(30)}, dispatch_timeout=0.2, atomic=False)
    try:
        with served(made) as port:
            failed = Client(port).call("t")
            go_on.set()
    finally:
        go_on.set()
    assert failed["isError"]
    assert "timed out" in failed["content"][0]["text"]


@pytest.mark.parametrize(("value", "told"), [(None, {}), (7, {"result": 7}), (["a"], {"result": ["a"]}), ({}, {})])
def test_structured_content_is_an_object(value: Any, told: Any) -> None:
    assert service(lambda: value).call_tool("t").structured_content == told


def test_output_is_written_as_toon() -> None:
    rows = {"rows": [{"id": n, "name": f"n{n}"} for n in range(20)]}
    for form in ("toon", "auto"):
        made = service(lambda: rows, output_format=form)
        with served(made) as port:
            result = Client(port).call("t")
        assert result["structuredContent"] == rows
        assert "rows[20]" in result["content"][0]["text"]
    with pytest.raises(Exception, match="there are json, toon, auto"):
        service(lambda: rows, output_format="xml")


# Selectors -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def invoices() -> list[Invoice]:
    Invoice.objects.all().delete()
    who, _ = Customer.objects.get_or_create(name="Ada")
    numbers = [f"2026-{n:03}" for n in range(1, 26)]
    return [
        Invoice.objects.create(customer=who, number=number, status="sent" if n % 5 == 0 else "draft")
        for n, number in enumerate(numbers)
    ]


def lists(**options: Any) -> MCPServer:
    fields = SelectorSpec.__dataclass_fields__
    spec = {key: options.pop(key) for key in list(options) if key in fields}
    base = {"kind": SelectorKind.LIST, "selector": Invoice.objects.all, "output_serializer": InvoiceOutput}
    made = server()
    made.register_selector_tool(name="t", spec=SelectorSpec(**base | {"permission_classes": []} | spec), **options)
    return made


def test_lists_are_filtered_ordered_and_cut_into_pages(invoices: list[Invoice]) -> None:
    made = lists(filter_set=InvoiceFilter, paginate=True, ordering_fields=["number"], prefetch_related=["lines"])
    page = made.call_tool("t", {"limit": 10, "page": 2, "ordering": "-number"}).structured_content
    assert [item["number"] for item in page["items"]] == [f"2026-{n:03}" for n in range(15, 5, -1)]
    assert (page["page"], page["totalPages"], page["hasNext"]) == (2, 3, True)
    last = made.call_tool("t", {"limit": 10, "page": 99}).structured_content
    assert (last["page"], last["hasNext"], len(last["items"])) == (3, False, 5)
    sent = made.call_tool("t", {"status": "sent", "customer": "ad"}).structured_content
    assert len(sent["items"]) == 5
    for wrong in ({"status": "lost"}, {"ordering": "customer"}, {"limit": 0}, {"page": "x"}, {"nothing": 1}):
        assert refused(made, wrong)["type"] == "validation_error"


def test_a_page_is_cut_by_the_database(invoices: list[Invoice], django_queries: list[str]) -> None:
    made = lists(paginate=True, select_related=["customer"], prefetch_related=["lines"], max_page_size=5)
    assert len(made.call_tool("t", {"limit": 500}).structured_content["items"]) == 5
    assert len(django_queries) == 3
    assert "LIMIT 5" in django_queries[1]


def test_a_list_that_is_not_paged_is_refused_and_never_cut(invoices: list[Invoice]) -> None:
    assert len(lists().call_tool("t").structured_content["items"]) == 25
    with pytest.raises(ToolError, match="more than 10 rows"):
        lists(max_page_size=10).call_tool("t")
    with setting(MAX_PAGE_SIZE=10), pytest.raises(ToolError, match="more than 10 rows"):
        lists().call_tool("t")


def test_one_row_is_retrieved(invoices: list[Invoice]) -> None:
    def by_number(*, number: str, user: Any) -> Any:
        return Invoice.objects.filter(number=number) if user.is_superuser else Invoice.objects.none()

    made = lists(kind=SelectorKind.RETRIEVE, selector=by_number)
    assert made.registry.tools["t"].listed()["inputSchema"]["properties"].keys() == {"number"}
    assert made.call_tool("t", {"number": "2026-003"}, user=USER).structured_content["number"] == "2026-003"
    assert refused(made, {"number": "2026-003"}, user=AnonymousUser())["type"] == "not_found"
    assert refused(made, {})["type"] == "validation_error"
    nullable = lists(kind=SelectorKind.RETRIEVE, selector=by_number, allow_none=True)
    assert nullable.call_tool("t", {"number": "none"}, user=USER).structured_content == {}


def test_what_a_selector_cannot_be_is_said_at_registration() -> None:
    with pytest.raises(RegistrationError, match="takes a SelectorSpec, not function"):
        server().register_selector_tool(name="t", spec=double, permissions=[])
    with pytest.raises(RegistrationError, match="register_service_tool's"):
        server().register_selector_tool(name="t", spec=ServiceSpec(service=double), permissions=[])
    with pytest.raises(RegistrationError, match="of a LIST"):
        lists(kind=SelectorKind.RETRIEVE, paginate=True)
    with pytest.raises(RegistrationError, match="registered already"):
        service(double, of=service(double, input_serializer=Number), input_serializer=Number)


# The long way --------------------------------------------------------------------------------------------------------


def test_what_is_not_compiled_here_runs_through_its_own_package() -> None:
    def add_all(*, data: list[Any]) -> list[Customer]:
        return [Customer.objects.create(name=one["name"]) for one in data]

    class Shown(serializers.ModelSerializer):
        class Meta:
            model = Customer
            fields = ("name",)

    shown = SelectorSpec(kind=SelectorKind.RETRIEVE, output_serializer=Shown)
    made = service(add_all, many=True, input_serializer=Name, output_selector_spec=shown)
    assert type(made.registry.tools["t"].runs).__name__ == "DispatchedSpec"
    result = made.call_tool("t", {"items": [{"name": "one of many"}, {"name": "two of many"}]})
    assert result.structured_content == {"items": [{"name": "one of many"}, {"name": "two of many"}]}
    assert refused(made, {"items": [{"name": "three of many"}, {}]})["type"] == "validation_error"
    assert refused(made, {"items": [], "more": 1})["type"] == "validation_error"
    assert not Customer.objects.filter(name="three of many").exists()
    with served(made) as port:
        assert Client(port).call("t", items=[{"name": "four of many"}])["structuredContent"]


def test_the_long_way_asks_permissions_too() -> None:
    made = service(lambda *, data: [], many=True, input_serializer=Name, permission_classes=[IsAuthenticated])
    with pytest.raises(Forbidden):
        made.call_tool("t", {"items": []}, user=AnonymousUser())


# Decorators ----------------------------------------------------------------------------------------------------------


def test_decorators_register_functions() -> None:
    made = server()

    @made.service_tool(input_serializer=Number, permission_classes=[])
    def doubled(*, n: int) -> dict[str, int]:
        """Twice."""
        return {"n": 2 * n}

    @made.selector_tool(kind=SelectorKind.LIST, output_serializer=InvoiceOutput, permission_classes=[], paginate=True)
    def all_of_them() -> Any:
        return Invoice.objects.all()

    @made.tool()
    def plain(n: int) -> int:
        return n + 1

    assert doubled(n=1) == {"n": 2}
    assert made.registry.tools["doubled"].description == "Twice."
    with served(made) as port:
        assert Client(port).call("doubled", n=2)["structuredContent"] == {"n": 4}
        assert Client(port).call("plain", n=2)["structuredContent"] == {"result": 3}
        assert "items" in Client(port).call("all_of_them")["structuredContent"]
