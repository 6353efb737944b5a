"""The shop's tools as people write them: httpx and redis-py.

The clients are made at the first call, on the loop that serves, and keep their connections.
"""

from __future__ import annotations

import os
from typing import Any

from shop_values import CONNECTIONS, Item, cart_text, order_body, receipt_text


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
    return cart_text(user_id, user, cart)


async def checkout(user_id: int, items: list[Item]) -> str:
    """Orders items for a user."""
    reply = await http().post("/price", json=order_body(items))
    reply.raise_for_status()
    total = reply.json()["total_cents"]
    async with redis().pipeline(transaction=False) as pipe:
        pipe.incr(f"orders:{user_id}")
        pipe.hincrby(f"user:{user_id}", "spent", total)
        pipe.lpush(f"history:{user_id}", total)
        pipe.ltrim(f"history:{user_id}", 0, 9)
        number, *_ = await pipe.execute()
    return receipt_text(number, total, items)


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
