"""The tools of Python server programs (adapters/README.md): plain functions, registered by each adapter its SDK's way.

Runs on Python 3.10, and imports nothing of any SDK. The clients of HTTP and Redis are made at the first call, on the
loop that serves, and keep their connections.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

CONNECTIONS = 1_000
"""Maximum number of kept connections. httpx' default is 20, so a 21st concurrent user would connect for each call."""

MOST_BYTES = 10_000_000


class NoUser(Exception):
    """A tool's error, with its message."""


class Item(BaseModel):
    product_id: int
    quantity: int


def echo(text: str) -> str:
    """Says the text again."""
    return text


def greet(name: str) -> str:
    """Greets somebody by name."""
    return f"Hello, {name}!"


def double(n: int) -> str:
    """Doubles a number."""
    return str(2 * n)


async def wait(ms: int) -> str:
    """Waits that many milliseconds."""
    await asyncio.sleep(ms / 1000)
    return "waited"


def work(us: int) -> str:
    """Keeps a processor busy for that many microseconds: what others do on it meanwhile doesn't count."""
    until = time.thread_time_ns() + 1_000 * us
    while time.thread_time_ns() < until:
        pass
    return "worked"


def payload(bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)]) -> str:
    """Answers that many bytes."""
    return "x" * bytes


async def search_products(query: str, limit: int = 10) -> str:
    """Searches the shop's products by name."""
    reply = await http().get("/products", params={"q": query, "limit": limit})
    reply.raise_for_status()
    return reply.text


async def get_user_cart(user_id: int) -> str:
    """A user and what is in the cart."""
    async with redis().pipeline(transaction=False) as pipe:
        pipe.hgetall(f"user:{user_id}")
        pipe.lrange(f"cart:{user_id}", 0, -1)
        user, cart = await pipe.execute()
    if not user:
        raise NoUser(f"no user {user_id}")
    pairs = [entry.split(":") for entry in cart]
    items = [{"product_id": int(product), "quantity": int(quantity)} for product, quantity in pairs]
    return compact(
        {
            "user": {"id": user_id, "name": user["name"], "tier": user["tier"]},
            "items": items,
            "count": len(items),
        }
    )


async def checkout(user_id: int, items: list[Item]) -> str:
    """Orders items for a user."""
    order = {"items": [{"product_id": item.product_id, "quantity": item.quantity} for item in items]}
    reply = await http().post("/price", json=order)
    reply.raise_for_status()
    total = reply.json()["total_cents"]
    async with redis().pipeline(transaction=False) as pipe:
        pipe.incr(f"orders:{user_id}")
        pipe.hincrby(f"user:{user_id}", "spent", total)
        pipe.lpush(f"history:{user_id}", total)
        pipe.ltrim(f"history:{user_id}", 0, 9)
        number, *_ = await pipe.execute()
    return compact({"order": number, "total_cents": total, "items": len(items)})


COMMON: list[Callable[..., Any]] = [echo, greet, double, wait, work, payload]
SHOP: list[Callable[..., Any]] = [search_products, get_user_cart, checkout]


def registered() -> list[Callable[..., Any]]:
    """Those that this process is to have."""
    return COMMON + (SHOP if os.environ.get("SHOP_API") and os.environ.get("SHOP_REDIS") else [])


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_clients: dict[str, Any] = {}


def http() -> Any:
    if "http" not in _clients:
        import httpx

        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        _clients["http"] = httpx.AsyncClient(base_url=os.environ["SHOP_API"], limits=limits, trust_env=False)
    return _clients["http"]


def redis() -> Any:
    if "redis" not in _clients:
        from redis.asyncio import Redis

        _clients["redis"] = Redis.from_url(os.environ["SHOP_REDIS"], decode_responses=True)
    return _clients["redis"]
