"""Values that the tools of the shop take and give, without any client library."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

CONNECTIONS = 1_000
"""Maximum number of kept connections. httpx' default is 20, so a 21st concurrent user would connect for each call."""


class NoUser(Exception):
    """A tool's error, with its message."""


class Item(BaseModel):
    product_id: int
    quantity: int


def order_body(items: list[Item]) -> dict[str, Any]:
    """The request for a price."""
    return {"items": [{"product_id": item.product_id, "quantity": item.quantity} for item in items]}


def cart_text(user_id: int, user: dict[str, str], cart: list[str]) -> str:
    """The answer of `get_user_cart`, or the error of a user that does not exist."""
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


def receipt_text(number: int, total: int, items: list[Item]) -> str:
    """The answer of `checkout`."""
    return compact({"order": number, "total_cents": total, "items": len(items)})


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
