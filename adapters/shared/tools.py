"""The tools of Python server programs (adapters/README.md): plain functions, registered by each adapter its SDK's way.

Runs on Python 3.10, and imports nothing of any SDK. The tools of the shop are in ``shop.py``, or in ``shop_quick.py``
with quicker client libraries.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

MOST_BYTES = 10_000_000


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


COMMON: list[Callable[..., Any]] = [echo, greet, double, wait, work, payload]


def registered() -> list[Callable[..., Any]]:
    """Tools that this process is to have."""
    if not (os.environ.get("SHOP_API") and os.environ.get("SHOP_REDIS")):
        return COMMON
    if os.environ.get("SHOP_QUICK"):
        import shop_quick as shop
    else:
        import shop
    return [*COMMON, shop.search_products, shop.get_user_cart, shop.checkout]
