"""The shop's tools with quicker client libraries: wreq for HTTP, and valkey-glide for Redis.

The clients are made at the first call, on the loop that serves, and keep their connections.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import urlsplit

from shop_values import CONNECTIONS, Item, cart_text, order_body, receipt_text


async def search_products(query: str, limit: int = 10) -> str:
    """Searches the shop's products by name."""
    reply = await http().get(url("/products"), query={"q": query, "limit": limit})
    reply.raise_for_status()
    return str(await reply.text())


async def get_user_cart(user_id: int) -> str:
    """A user and what is in the cart."""
    user, cart = await send(batch().hgetall(f"user:{user_id}").lrange(f"cart:{user_id}", 0, -1))
    texts = {key.decode(): value.decode() for key, value in user.items()}
    return cart_text(user_id, texts, [entry.decode() for entry in cart])


async def checkout(user_id: int, items: list[Item]) -> str:
    """Orders items for a user."""
    reply = await http().post(url("/price"), json=order_body(items))
    reply.raise_for_status()
    total = (await reply.json())["total_cents"]
    orders = batch().incr(f"orders:{user_id}").hincrby(f"user:{user_id}", "spent", total)
    number, *_ = await send(orders.lpush(f"history:{user_id}", [str(total)]).ltrim(f"history:{user_id}", 0, 9))
    return receipt_text(number, total, items)


_clients: dict[str, Any] = {}


def url(path: str) -> str:
    return os.environ["SHOP_API"] + path


def http() -> Any:
    if "http" not in _clients:
        import wreq

        _clients["http"] = wreq.Client(pool_max_idle_per_host=CONNECTIONS, no_proxy=True)
    return _clients["http"]


def batch() -> Any:
    """Commands that one message sends."""
    from glide import Batch

    return Batch(is_atomic=False)


async def send(commands: Any) -> list[Any]:
    """Sends a batch and returns its answers."""
    if "redis" not in _clients:
        _clients["redis"] = asyncio.ensure_future(open_redis())
    client = await _clients["redis"]
    return list(await client.exec(commands, raise_on_error=True))


async def open_redis() -> Any:
    from glide import GlideClient, GlideClientConfiguration, NodeAddress

    place = urlsplit(os.environ["SHOP_REDIS"])
    node = NodeAddress(place.hostname or "127.0.0.1", place.port or 6379)
    return await GlideClient.create(GlideClientConfiguration([node], database_id=int(place.path.strip("/") or 0)))
