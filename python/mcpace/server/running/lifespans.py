"""Runs an author's lifespan around the serving: entered before the first request, left after the last answer.

Constraint: one task of the runtime's event loop enters it and leaves it, as cancel scopes and task groups demand.
"""

from __future__ import annotations

import concurrent.futures
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mcpace.server.running.errors import AuthorProblem
from mcpace.server.running.prepared import Prepared

if TYPE_CHECKING:
    import asyncio


class _Left(Exception):
    """Replaces ``SystemExit`` or ``KeyboardInterrupt`` of a lifespan, which would end the event loop's thread."""


def _own(error: Exception) -> BaseException:
    return error.__cause__ or error if isinstance(error, _Left) else error


class RunningLifespan:
    """A context manager that runs a server's lifespan. A server without a lifespan needs no event loop here.

    Raises :class:`AuthorProblem` with the exception that entering or leaving the lifespan raised.
    """

    def __init__(self, prepared: Prepared) -> None:
        self._lifespan = prepared.lifespan
        self._core = prepared.core
        self._begun: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ending: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._whole: concurrent.futures.Future[None] | None = None

    def __enter__(self) -> Self:
        if self._lifespan is not None:
            # Imported late: asyncio takes a tenth of the start of a server without a lifespan.
            import asyncio

            self._whole = asyncio.run_coroutine_threadsafe(self._live(), self._core.event_loop())
            self._whole.add_done_callback(self._settle)
            try:
                self._begun.result()
            except Exception as error:
                raise AuthorProblem("entering the lifespan", _own(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole is None or self._loop is None or self._ending is None:
            return
        self._loop.call_soon_threadsafe(self._ending.set)
        try:
            self._whole.result()
        except Exception as raised:
            if error is None:
                raise AuthorProblem("leaving the lifespan", _own(raised)) from raised

    async def _live(self) -> None:
        import asyncio

        assert self._lifespan is not None
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._lifespan():
                self._begun.set_result(None)
                await self._ending.wait()
        except (SystemExit, KeyboardInterrupt) as error:
            raise _Left from error

    def _settle(self, whole: concurrent.futures.Future[None]) -> None:
        if self._begun.done():
            return
        # The future is cancelled if the process ends meanwhile.
        error = None if whole.cancelled() else whole.exception()
        # A lifespan that ends before it yields is an error, too.
        self._begun.set_exception(error or RuntimeError("the lifespan ended before it began"))
