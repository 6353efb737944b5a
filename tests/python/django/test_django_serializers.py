"""Serializers that serve several calls: no call sees the state of another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from support.django_project import USER, server

# isort: split
from django.contrib.auth.models import AnonymousUser
from rest_framework import serializers
from rest_framework_services import SelectorKind, SelectorSpec

from invoices.models import Customer
from support.django_services import double, refused, service
from support.python_server import Client, served


def test_what_a_call_leaves_on_a_serializer_nobody_sees() -> None:
    class Leaky(serializers.Serializer):
        a = serializers.CharField(required=False)
        b = serializers.CharField(required=False)

        def to_internal_value(self, data: Any) -> Any:
            # A common mutation, which a pooled serializer must not keep.
            self.seen = getattr(self, "seen", 0) + 1
            if "b" in data:
                self.fields["a"].required = True
                self.fields["b"].left = data["b"]
            if "drop" in data.get("b", ""):
                self.fields.pop("a")
            return super().to_internal_value(data)

        def validate(self, attrs: Any) -> Any:
            return {**attrs, "seen": self.seen, "left": getattr(self.fields["b"], "left", None)}

    made = service(lambda *, data: dict(data), input_serializer=Leaky)
    assert made.registry.tools["t"].runs._reader._kept.is_reused
    assert made.call_tool("t", {"a": "x", "b": "y"}).structured_content["left"] == "y"
    assert made.call_tool("t", {"b": "drop"}).structured_content == {"b": "drop", "seen": 1, "left": "drop"}
    assert made.call_tool("t", {}).structured_content == {"seen": 1, "left": None}
    assert made.call_tool("t", {"a": "z"}).structured_content == {"a": "z", "seen": 1, "left": None}
    assert refused(made, {"b": "y"})["detail"] == {"a": ["This field is required."]}


def test_what_a_call_adds_to_a_fields_lists_and_rows_is_gone_after_it() -> None:
    class Known(serializers.PrimaryKeyRelatedField):
        def get_queryset(self) -> Any:
            # Caches the rows on the queryset, as any iteration does.
            assert len(self.queryset) == Customer.objects.count()
            return self.queryset

    class Grows(serializers.Serializer):
        n = serializers.IntegerField(min_value=0)
        customer = Known(queryset=Customer.objects.all(), required=False)

        def to_internal_value(self, data: Any) -> Any:
            if data["n"] > 5:
                self.fields["n"].validators.append(refuse)
            return super().to_internal_value(data)

    def refuse(n: int) -> None:
        raise serializers.ValidationError("no")

    made = service(lambda *, data: {"n": data["n"]}, input_serializer=Grows)
    assert made.registry.tools["t"].runs._reader._kept.is_reused
    for name in ("first of two", "second of two"):
        row = Customer.objects.create(name=name)
        assert made.call_tool("t", {"n": 1, "customer": row.pk}).structured_content == {"n": 1}
    assert refused(made, {"n": 6})["detail"] == {"n": ["no"]}
    assert made.call_tool("t", {"n": 1}).structured_content == {"n": 1}


def test_a_lists_serializer_has_its_list_as_parent(django_queries: list[str]) -> None:
    class Shown(serializers.ModelSerializer):
        count = serializers.SerializerMethodField()

        class Meta:
            model = Customer
            fields = ("name", "count")

        def get_count(self, row: Customer) -> int:
            return len(self.parent.instance)

    Customer.objects.create(name="counted")
    spec = SelectorSpec(kind=SelectorKind.LIST, selector=Customer.objects.all, output_serializer=Shown)
    made = server()
    made.register_selector_tool(name="t", spec=spec, permissions=[])
    for _ in range(2):
        items = made.call_tool("t").structured_content["items"]
        assert {item["count"] for item in items} == {len(items)}


def test_a_serializers_context_is_the_calls_own() -> None:
    class Owned(serializers.Serializer):
        owner = serializers.HiddenField(default=serializers.CurrentUserDefault())
        n = serializers.IntegerField()

        def validate_n(self, n: int) -> int:
            return n if self.context["request"].user.is_superuser else 0

    made = service(lambda *, owner, n: {"owner": str(owner), "n": n}, input_serializer=Owned)
    assert made.registry.tools["t"].listed()["inputSchema"]["properties"].keys() == {"n"}
    assert made.call_tool("t", {"n": 1}, user=USER).structured_content == {"owner": "root", "n": 1}
    nobody = made.call_tool("t", {"n": 1}, user=AnonymousUser()).structured_content
    assert nobody == {"owner": "AnonymousUser", "n": 0}


def test_a_serializer_that_decides_while_it_is_made_is_made_for_each_call() -> None:
    class Decides(serializers.Serializer):
        n = serializers.IntegerField()

        def __init__(self, *args: Any, **keywords: Any) -> None:
            super().__init__(*args, **keywords)
            request = self.context.get("request")
            if request is not None and not request.user.is_superuser:
                self.fields["n"].read_only = True

    made = service(lambda *, data: dict(data), input_serializer=Decides)
    assert not made.registry.tools["t"].runs._reader._kept.is_reused
    assert made.call_tool("t", {"n": 5}, user=AnonymousUser()).structured_content == {}
    assert made.call_tool("t", {"n": 5}, user=USER).structured_content == {"n": 5}


def test_a_choice_is_refused_once_it_is_withdrawn_and_taken_once_it_is_added() -> None:
    class Lazily:
        now = ("old", "kept")

        def __iter__(self) -> Iterator[str]:
            return iter(self.now)

    class Chooses(serializers.Serializer):
        n = serializers.ChoiceField(Lazily())

    made = service(lambda *, n: {"n": n}, input_serializer=Chooses)
    with served(made) as port:
        client = Client(port)
        assert client.call("t", n="old")["structuredContent"] == {"n": "old"}
        Lazily.now = ("kept", "new")
        withdrawn = client.call("t", n="old")
        assert withdrawn["isError"] and "is not a valid choice" in withdrawn["content"][0]["text"]
        assert client.call("t", n="new")["structuredContent"] == {"n": "new"}


def test_calls_at_once_have_a_serializer_each() -> None:
    started, go_on = threading.Barrier(3, timeout=30), threading.Event()

    class Waits(serializers.Serializer):
        n = serializers.IntegerField()

        def validate_n(self, n: int) -> int:
            self.mine = n
            started.wait()
            go_on.wait(30)
            return self.mine

    made = service(double, input_serializer=Waits, atomic=False)
    with served(made) as port:
        results: dict[int, Any] = {}
        calls = [threading.Thread(target=lambda n=n: results.update({n: Client(port).call("t", n=n)})) for n in (1, 2)]
        for call in calls:
            call.start()
        started.wait()
        go_on.set()
        for call in calls:
            call.join(30)
    assert {n: result["structuredContent"]["doubled"] for n, result in results.items()} == {1: 2, 2: 4}
