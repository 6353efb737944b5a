"""Workloads of a comparison of servers: the calls of the load, and the answers that every tool must give.

``echo`` calls one trivial tool, which measures the SDK. ``shop`` calls three tools in equal parts that use an HTTP API
and a Redis, like servers in production. ``shop-quick`` makes the calls of ``shop`` to servers whose tools use quicker
client libraries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from mcpace import _core
from mcpace.lab.errors import LabError, UnknownName
from mcpace.lab.load.plan import Operation
from mcpace.lab.servers import shop
from mcpace.lab.servers.plan import WORKLOADS
from mcpace.lab.servers.shop import Account, Shop

SHOPS = ("shop", "shop-quick")

BUYER = shop.USERS + 10_000
"""User of the check's order, who is not among the load's users."""
SHOWN = 200

Call = tuple[str, dict[str, Any], str]
"""Tool, arguments, and the expected text of the answer."""


class WrongAnswer(LabError):
    """A server's tool gives a wrong answer, so its speed can't be compared."""

    code = "wrong-answer"


@dataclass(frozen=True)
class Load:
    """The calls of a workload, as the load engine takes them."""

    operations: list[Operation]
    data: dict[str, list[str]] = field(default_factory=dict)


class Workload:
    """A workload and its running backends. Use as a context manager.

    Raises :class:`LabError` where a backend can't be started.
    """

    def __init__(self, name: str) -> None:
        if name not in WORKLOADS:
            raise UnknownName("workload", name, WORKLOADS)
        self.name = name
        self._stack = ExitStack()
        self.shop = self._stack.enter_context(Shop()) if name in SHOPS else None

    def __enter__(self) -> Workload:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def load_operations(self) -> Load:
        """Operations of the load."""
        if self.shop is None:
            return Load([Operation(name="echo", kind="call", tool="echo", arguments={"text": "hi"})])
        user = f"{{{{random(1,{shop.USERS})}}}}"
        item = {"product_id": f"{{{{random(1,{shop.PRODUCTS})}}}}", "quantity": "{{random(1,5)}}"}
        tools: dict[str, dict[str, Any]] = {
            "search_products": {"query": "{{choice:searches}}", "limit": 10},
            "get_user_cart": {"user_id": user},
            "checkout": {"user_id": user, "items": [item, item]},
        }
        operations = [Operation(name=name, kind="call", tool=name, arguments=given) for name, given in tools.items()]
        return Load(operations, {"searches": list(shop.SEARCHES)})

    def open(self) -> Account | None:
        """Creates one server's database; ``None`` for a workload without a database."""
        return self.shop.open(quick=self.name == "shop-quick") if self.shop else None

    def backends(self) -> dict[str, str]:
        """Names and versions of the backends."""
        if self.shop is None:
            return {}
        return {"redis-server": self.shop.redis.version, "product API": f"mcpace {_core.VERSION}"}

    def check(self, client: _core.Client, account: Account | None) -> list[str]:
        """Calls each tool once, and returns their names.

        Raises :class:`WrongAnswer` for a missing tool and for an unexpected answer.
        """
        listed = {str(tool.get("name")) for tool in client.list_tools()}
        checked = []
        for tool, arguments, expected in self._tool_calls(account):
            if tool not in listed:
                raise WrongAnswer(f"it has no tool {tool}; it lists {', '.join(sorted(listed))[:SHOWN] or 'none'}")
            answer = _content_text(tool, client.call_tool(tool, arguments))
            if answer != expected:
                raise WrongAnswer(
                    f"{tool} answers {_shortened_quote(answer)} to {json.dumps(arguments)[:SHOWN]}, "
                    f"not {_shortened_quote(expected)}"
                )
            checked.append(tool)
        return checked

    def _tool_calls(self, account: Account | None) -> Iterator[Call]:
        yield "echo", {"text": 'hi "é" \\ 你好'}, 'hi "é" \\ 你好'
        yield "greet", {"name": "mcpace"}, "Hello, mcpace!"
        yield "double", {"n": 21}, "42"
        yield "wait", {"ms": 1}, "waited"
        yield "work", {"us": 10}, "worked"
        yield "payload", {"bytes": 10_000}, "x" * 10_000
        if self.shop is not None and account is not None:
            yield from self._shop_calls(self.shop, account)

    def _shop_calls(self, behind: Shop, account: Account) -> Iterator[Call]:
        yield "search_products", {"query": "Wireless Head", "limit": 3}, behind.search("Wireless Head", 3)
        for user in (7, 8):  # a full cart and an empty one
            items = [{"product_id": product, "quantity": quantity} for product, quantity in shop.cart_items(user)]
            cart = {"user": shop.user_record(user), "items": items, "count": len(items)}
            yield "get_user_cart", {"user_id": user}, _compact_json(cart)
        items = [{"product_id": 1, "quantity": 2}, {"product_id": 2, "quantity": 1}]
        total = behind.price(items)
        with account.connect() as connection:
            orders = int(_count_digits(connection.send_command("GET", f"orders:{BUYER}")))
        paid = {"order": orders + 1, "total_cents": total, "items": len(items)}
        yield "checkout", {"user_id": BUYER, "items": items}, _compact_json(paid)
        with account.connect() as connection:
            left = connection.send_pipeline([["HGET", f"user:{BUYER}", "spent"], ["LRANGE", f"history:{BUYER}", 0, -1]])
        if left != [str((orders + 1) * total).encode(), [str(total).encode()] * (orders + 1)]:
            raise WrongAnswer(f"checkout left other things in Redis than it must: {left!r}"[:SHOWN])


def _count_digits(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b"0"


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _content_text(tool: str, result: dict[str, Any]) -> str:
    content = result.get("content")
    texts = [str(part.get("text")) for part in content or [] if isinstance(part, dict)]
    if result.get("isError"):
        raise WrongAnswer(f"{tool} answers with an error: {_shortened_quote(' '.join(texts))}")
    if len(texts) != 1:
        raise WrongAnswer(f"{tool} answers with {len(texts)} blocks of content, not with one")
    return texts[0]


def _shortened_quote(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")
