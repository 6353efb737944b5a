"""Layers: callables that are called in batches and timed with this process's clock.

Design constraint: Only the loop and the call itself are between the two readings of the clock. The result of the last
call is checked after the batch.
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
        """Description of the steps that its time includes."""
        self._check = check

    @abstractmethod
    def batch(self, calls: int) -> int:
        """Makes sequential calls and returns their total time in nanoseconds. Raises :class:`Problem`."""


class FunctionLayer(Layer):
    """Layer of a plain function."""

    def __init__(
        self,
        name: str,
        includes: str,
        check: Check,
        call: Callable[[], Any],
        before: Callable[[], object] | None = None,
    ) -> None:
        """``before`` is called before each batch, outside the measured time."""
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


class CoroutineLayer(Layer):
    """Layer of a coroutine function, called on a running event loop."""

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


class SelfTimedLayer(Layer):
    """Layer whose calls report their own time in nanoseconds. The rest of a call is not counted."""

    def __init__(self, name: str, includes: str, call: Callable[[], int], before: Callable[[], object]) -> None:
        super().__init__(name, includes, _nothing)
        self._call = call
        self._before = before

    def batch(self, calls: int) -> int:
        self._before()
        return sum(self._call() for _ in range(calls))


class Loop:
    """An event loop on its own thread. The main thread has no loop, like that of plain callers."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._contexts: list[tuple[asyncio.Event, asyncio.Future[None]]] = []
        threading.Thread(target=self._loop.run_forever, name="mcpace-layers", daemon=True).start()

    def run(self, work: Any, limit_s: float | None = None) -> Any:
        """Runs a coroutine and waits for its value."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit_s)

    def enter(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        """Enters a context and returns its value. One task enters and exits the context."""
        return self.run(self._enter_context(manager), OPEN_LIMIT_S)

    def close(self) -> None:
        """Exits all contexts, the last one first."""
        for release, over in reversed(self._contexts):
            self._loop.call_soon_threadsafe(release.set)
            try:
                self.run(asyncio.wait_for(_wait_for(over), 5.0), 6.0)
            except Exception:  # the process ends in any case
                return

    async def _enter_context(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        release = asyncio.Event()
        ready: asyncio.Future[Any] = self._loop.create_future()
        over: asyncio.Future[None] = self._loop.create_task(_hold_context(manager, ready, release))
        self._contexts.append((release, over))
        await asyncio.wait({ready, over}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await over  # raises why
        return ready.result()


async def _hold_context(manager: Any, ready: asyncio.Future[Any], release: asyncio.Event) -> None:
    async with manager as value:
        ready.set_result(value)
        await release.wait()


def _nothing(_: Any) -> None:
    """Check that accepts everything, since each call was checked by itself."""


async def _wait_for(over: asyncio.Future[None]) -> None:
    await asyncio.wait({over})
