"""The endpoint in somebody else's server: begun with the first request, or when the host says so; ended once.

Design constraint: no loop and no thread of its own, but for the beginning under a loop. Who comes while it begins has
the one attempt's outcome: to begin may take seconds, such as those of a store that doesn't answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from mcpace import _core
from mcpace.server.errors import logger
from mcpace.server.running.addresses import Address
from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.in_process import http_options
from mcpace.server.running.lifespans import Entered
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings

NOT_YET = "the endpoint can't begin at the moment"
"""What clients are told with a 503."""


@dataclass(frozen=True)
class Begun:
    """What there is from the beginning on."""

    core: Any
    """The compiled part's registry."""
    endpoint: Any
    """What answers requests."""
    loopback_only: str | None
    """Why other machines are refused, where they are."""
    beside: Any
    """The ASGI application of the author's custom routes; ``None`` where there are none."""
    entered: Entered


class Hosted:
    """``make`` is called once, before the lifespan is entered."""

    def __init__(self, make: Callable[[], Prepared], settings: Settings) -> None:
        self._make = make
        self._settings = settings
        self._lock = threading.Lock()
        self._attempt: Future[Begun] | None = None
        self._said: str | None = None
        self.begun: Begun | None = None
        """``None`` before the beginning and after the end."""

    def begin(self) -> Begun:
        """Not on an event loop's thread. Raises :class:`mcpace.server.running.errors.AuthorProblem`, and
        ``SetupProblem`` where what it needs isn't there, such as a store."""
        attempt, is_new = self._joined()
        if is_new:
            self._try(attempt)
        return attempt.result()

    async def begin_on_loop(self) -> Begun:
        """The same on an event loop's thread. Takes one thread, however many wait: the loop's own are the host's."""
        attempt, is_new = self._joined()
        if is_new:
            # It outlives a request whose client leaves meanwhile: others wait for it.
            threading.Thread(target=self._try, args=(attempt,), name="mcpace-begin", daemon=True).start()
        return await asyncio.wrap_future(attempt)

    def forget(self) -> None:
        """In a forked child, which has none of the threads that this has begun: the next request begins it anew."""
        self._lock = threading.Lock()
        self._attempt = self.begun = None

    def end(self) -> None:
        """Leaves the lifespan. Does nothing the second time."""
        with self._lock:
            attempt, self._attempt = self._attempt, None
        if attempt is None or attempt.exception() is not None:
            return
        begun = attempt.result()
        if self.begun is begun:
            self.begun = None
        begun.entered.__exit__(None, None, None)

    def _joined(self) -> tuple[Future[Begun], bool]:
        with self._lock:
            if self._attempt is not None:
                return self._attempt, False
            self._attempt = Future()
            # Who stops waiting doesn't end it for the others.
            self._attempt.set_running_or_notify_cancel()
            return self._attempt, True

    def _try(self, attempt: Future[Begun]) -> None:
        try:
            begun = self._made()
        except BaseException as problem:
            with self._lock:
                if self._attempt is attempt:
                    self._attempt = None
            self._say(problem)
            attempt.set_exception(problem)
        else:
            self._said = None
            self.begun = begun
            attempt.set_result(begun)

    def _made(self) -> Begun:
        try:
            prepared = self._make()
            address = Address(self._settings.host, self._settings.port)
            endpoint = prepared.core.endpoint(http_options(prepared, self._settings, address))
        except _core.EnvironmentProblem as problem:
            raise SetupProblem(str(problem)) from problem
        entered = Entered(prepared)
        entered.__enter__()
        return Begun(prepared.core, endpoint, prepared.loopback_only, prepared.options.get("asgi"), entered)

    def _say(self, problem: BaseException) -> None:
        """Once, not for each request; what is the author's own is his host's to say."""
        if isinstance(problem, SetupProblem) and str(problem) != self._said:
            self._said = str(problem)
            logger.error("the MCP endpoint can't begin: %s", problem)
