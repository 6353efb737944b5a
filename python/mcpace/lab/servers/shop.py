"""The shop: backends of the shop workload's tools, with equal contents for every server.

The backends are a product API (:class:`mcpace._core.Shop`) and a private Redis with one database for each server. A
database has users 1 to 1,000, each with a cart, generated from the user's id.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from contextlib import ExitStack
from types import TracebackType
from typing import Any
from urllib.parse import quote

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.servers.redis import DATABASES, Connection, Redis

USERS = 1_000
PRODUCTS = 100_000
NOBODY = USERS + 1
"""Id of a user that doesn't exist."""
LIMIT_S = 10.0

NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Alan", "Radia", "Niklaus", "Margaret")
TIERS = ("basic", "silver", "gold")
SEARCHES = (
    "lamp", "Kettle", "solar", "tent 1", "Wireless Head", "quartz", "desk", "Copper Steel", "router", "waterproof",
    "Kestrel", "chair 4", "slim", "Bamboo Bottle", "drill", "Vintage Turntable",
)  # fmt: skip
"""Search queries of the load. Each has results."""


class Shop:
    """The running shop. Use as a context manager, or call :meth:`close`.

    Raises :class:`LabError` where there is no Redis or a port can't be had.
    """

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.redis = stack.enter_context(Redis())
            api = _core.Shop(products=PRODUCTS)
            stack.callback(api.stop)
            self.api = api.url
            self._databases = 0
            self._stack = stack.pop_all()

    def open(self, *, quick: bool = False) -> Account:
        """Creates and fills the database of one server. ``quick`` asks the server for its quick client libraries."""
        if self._databases == DATABASES:
            raise LabError(f"one run has room for {DATABASES} servers with a shop")
        account = Account(self, self._databases, quick)
        self._databases += 1
        account.fill_database()
        return account

    def search(self, query: str, limit: int) -> str:
        """The API's unchanged answer to a search."""
        return _fetch(f"{self.api}/products?q={quote(query)}&limit={limit}")

    def price(self, items: list[dict[str, int]]) -> int:
        """Total price of the items, in cents."""
        total = json.loads(_fetch(f"{self.api}/price", {"items": items}))["total_cents"]
        return int(total)

    def close(self) -> None:
        """Ends both backends. Closing twice is harmless."""
        self._stack.close()

    def __enter__(self) -> Shop:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Account:
    """One server's database of the shop."""

    def __init__(self, shop: Shop, database: int, quick: bool) -> None:
        self._shop = shop
        self._database = database
        self._quick = quick

    def environment(self) -> dict[str, str]:
        """Environment variables for the server program: the backends' addresses (adapters/README.md)."""
        addresses = {"SHOP_API": self._shop.api, "SHOP_REDIS": self._shop.redis.database_url(self._database)}
        return {**addresses, "SHOP_QUICK": "1"} if self._quick else addresses

    def fill_database(self) -> None:
        """Replaces the database's contents by the users and their carts."""
        with self.connect() as connection:
            connection.send_command("FLUSHDB")
            connection.send_pipeline(command for user in range(1, USERS + 1) for command in _fill_commands(user))

    def connect(self) -> Connection:
        """Opens a connection of the lab to the database."""
        return self._shop.redis.connect(self._database)


def cart_items(user: int) -> list[tuple[int, int]]:
    """Products and quantities in a user's cart: none to seven."""
    return [((user * 7919 + place * 104_729) % PRODUCTS + 1, (user + place) % 5 + 1) for place in range(user % 8)]


def user_record(user: int) -> dict[str, Any]:
    """Id, name and tier of a user."""
    return {"id": user, "name": f"{NAMES[user % len(NAMES)]} {user}", "tier": TIERS[user % len(TIERS)]}


def _fill_commands(user: int) -> list[list[str | int]]:
    entry = user_record(user)
    commands: list[list[str | int]] = [["HSET", f"user:{user}", "name", entry["name"], "tier", entry["tier"]]]
    if items := cart_items(user):
        commands.append(["RPUSH", f"cart:{user}", *(f"{product}:{quantity}" for product, quantity in items)])
    return commands


def _fetch(url: str, body: Any = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    # The API is on loopback, so the user's proxies are bypassed.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, data), timeout=LIMIT_S) as reply:
            text: str = reply.read().decode()
            return text
    except urllib.error.URLError as error:
        raise LabError(f"the shop's product API doesn't answer: {error.reason}") from error
