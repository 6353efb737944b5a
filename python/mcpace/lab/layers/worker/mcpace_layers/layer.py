"""A layer: something that is called again and again, by the clock of this process.

Design constraint: nothing but the loop and the call itself stands between the two readings of the clock. What a call
gave is looked at after the last one of a batch.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from time import perf_counter_ns
from typing import Any

Check = Callable[[Any], None]
"""Raises :class:`Problem` where a call's result is a failure."""

OPEN_LIMIT_S = 60.0


class Layer(ABC):
    """One layer of a server."""

    def __init__(self, name: str, includes: str, check: Check) -> None:
        self.name = name
        self.includes = includes
        """What is in its time, in words."""
        self._check = check

    @abstractmethod
    def batch(self, calls: int) -> int:
        """So many calls, one after the other; nanoseconds that they took. Raises :class:`Problem`."""


class Plain(Layer):
    """A function."""

    def __init__(
        self,
        name: str,
        includes: str,
        check: Check,
        call: Callable[[], Any],
        before: Callable[[], object] | None = None,
    ) -> None:
        """``before`` is called ahead of each batch, outside of its time."""
        super().__init__(name, includes, check)
        self._call = call
        self._before = before

    def batch(self, calls: int) -> int:
        if self._before is not None:
            self._before()
        call, result = self._call, None
        numbers = itertools.repeat(None, calls)
        start = perf_counter_ns()
        for _ in numbers:
            result = call()
        took = perf_counter_ns() - start
        self._check(result)
        return took


class Awaited(Layer):
    """A coroutine function, on a loop that is there already."""

    def __init__(self, name: str, includes: str, check: Check, loop: Loop, call: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(name, includes, check)
        self._loop = loop
        self._call = call

    def batch(self, calls: int) -> int:
        took, result = self._loop.run(self._batch(calls))
        self._check(result)
        return took

    async def _batch(self, calls: int) -> tuple[int, Any]:
        call, result = self._call, None
        numbers = itertools.repeat(None, calls)
        start = perf_counter_ns()
        for _ in numbers:
            result = await call()
        return perf_counter_ns() - start, result


class Told(Layer):
    """What each call tells of itself, in nanoseconds; the rest of the call is not counted."""

    def __init__(self, name: str, includes: str, call: Callable[[], int], before: Callable[[], object]) -> None:
        super().__init__(name, includes, _nothing)
        self._call = call
        self._before = before

    def batch(self, calls: int) -> int:
        self._before()
        return sum(self._call() for _ in range(calls))


class Loop:
    """An event loop on a thread of its own: the main thread has none, as plain callers haven't."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._held: list[tuple[asyncio.Event, asyncio.Future[None]]] = []
        threading.Thread(target=self._loop.run_forever, name="mcpace-layers", daemon=True).start()

    def run(self, work: Any, limit_s: float | None = None) -> Any:
        """Waits for a coroutine's value."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit_s)

    def enter(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        """Enters a context in a task of its own, in which it is left, too; its value."""
        return self.run(self._entered(manager), OPEN_LIMIT_S)

    def close(self) -> None:
        """Leaves all contexts, the last one first."""
        for release, over in reversed(self._held):
            self._loop.call_soon_threadsafe(release.set)
            try:
                self.run(asyncio.wait_for(_settled(over), 5.0), 6.0)
            except Exception:  # the process ends in any case
                return

    async def _entered(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        release = asyncio.Event()
        ready: asyncio.Future[Any] = self._loop.create_future()
        over: asyncio.Future[None] = self._loop.create_task(_hold(manager, ready, release))
        self._held.append((release, over))
        await asyncio.wait({ready, over}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await over  # raises why
        return ready.result()


async def _hold(manager: Any, ready: asyncio.Future[Any], release: asyncio.Event) -> None:
    async with manager as value:
        ready.set_result(value)
        await release.wait()


def _nothing(_: Any) -> None:
    """Each call was looked at."""


async def _settled(over: asyncio.Future[None]) -> None:
    await asyncio.wait({over})
