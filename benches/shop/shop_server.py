"""The server program of the shop on mcpace's Python face, with the client libraries that the command line names.

The contract with the process that starts it is that of ``adapters/mcpace-python/server.py``, which this program runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).resolve().parents[2] / "adapters"
sys.path[:0] = [str(ADAPTERS / "mcpace-python"), str(ADAPTERS / "shared")]
import libraries  # noqa: E402

import server  # noqa: E402
import tools  # noqa: E402
from shop_values import Item, cart_text, order_body, receipt_text  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", choices=libraries.HTTP, required=True)
    parser.add_argument("--redis", choices=libraries.REDIS, required=True)
    parser.add_argument("--packages", action="append", default=[], help="a folder of packages")
    chosen, rest = parser.parse_known_args()
    sys.path += chosen.packages
    sys.argv[1:] = rest
    http, redis = libraries.HTTP[chosen.http], libraries.REDIS[chosen.redis]
    shop = blocking_tools(http, redis) if http.blocks else async_tools(http, redis)
    tools.registered = lambda: tools.COMMON + shop
    server.telling = lambda tool: tool
    server.main()


def async_tools(http_library: libraries.Library, redis_library: libraries.Library) -> list[Callable[..., Any]]:
    """The shop's tools for clients that are awaited."""
    http: libraries.Http | None = None
    redis: libraries.Redis | None = None

    def open_http() -> libraries.Http:
        nonlocal http
        http = http_library.open(os.environ["SHOP_API"])
        return http

    async def open_redis() -> libraries.Redis:
        nonlocal redis
        redis = await redis_library.open(os.environ["SHOP_REDIS"])
        return redis

    async def search_products(query: str, limit: int = 10) -> str:
        return await (http or open_http()).get("/products", {"q": query, "limit": limit})

    async def get_user_cart(user_id: int) -> str:
        user, cart = await (redis or await open_redis()).cart(user_id)
        return cart_text(user_id, user, cart)

    async def checkout(user_id: int, items: list[Item]) -> str:
        total = (await (http or open_http()).post("/price", order_body(items)))["total_cents"]
        number, *_ = await (redis or await open_redis()).pay(user_id, total)
        return receipt_text(number, total, items)

    return [search_products, get_user_cart, checkout]


def blocking_tools(http_library: libraries.Library, redis_library: libraries.Library) -> list[Callable[..., Any]]:
    """The shop's tools for clients that block their thread."""
    http, redis = http_library.open(os.environ["SHOP_API"]), redis_library.open(os.environ["SHOP_REDIS"])

    def search_products(query: str, limit: int = 10) -> str:
        return str(http.get("/products", {"q": query, "limit": limit}))

    def get_user_cart(user_id: int) -> str:
        user, cart = redis.cart(user_id)
        return cart_text(user_id, user, cart)

    def checkout(user_id: int, items: list[Item]) -> str:
        total = http.post("/price", order_body(items))["total_cents"]
        number, *_ = redis.pay(user_id, total)
        return receipt_text(number, total, items)

    return [search_products, get_user_cart, checkout]


if __name__ == "__main__":
    main()
