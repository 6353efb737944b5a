"""The endpoint within a host's server: started at the first request or by the host, and ended once.

Design constraint: it has no event loop and no thread of its own, except while it starts under an event loop. Requests
that arrive during the start share the result of that one attempt, which may take seconds if a store does not answer.
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
"""The text of the 503 that clients receive."""


@dataclass(frozen=True)
class Begun:
    """The parts of a started endpoint."""

    core: Any
    """The compiled part's registry."""
    endpoint: Any
    """Answers requests."""
    loopback_only: str | None
    """The reason why requests of other machines are refused; ``None`` if they are accepted."""
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
        """``None`` before the start and after the end."""

    def begin(self) -> Begun:
        """Starts the endpoint. Must not run on an event loop's thread. Raises
        :class:`mcpace.server.running.errors.AuthorProblem`, and ``SetupProblem`` if a required service, such as a
        store, is missing."""
        attempt, is_new = self._joined()
        if is_new:
            self._try(attempt)
        return attempt.result()

    async def begin_on_loop(self) -> Begun:
        """Starts the endpoint from an event loop's thread. All waiting tasks share one new thread, because the threads
        of the loop's executor belong to the host."""
        attempt, is_new = self._joined()
        if is_new:
            # The attempt outlives a request whose client disconnects, since other requests wait for it.
            threading.Thread(target=self._try, args=(attempt,), name="mcpace-begin", daemon=True).start()
        return await asyncio.wrap_future(attempt)

    def forget(self) -> None:
        """Forgets the endpoint in a forked child, which has none of its threads. The next request starts it again."""
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
            # A caller that is cancelled does not end the attempt for the others.
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
        """Logs a failed start once, not for each request. The host reports exceptions of the author's code."""
        if isinstance(problem, SetupProblem) and str(problem) != self._said:
            self._said = str(problem)
            logger.error("the MCP endpoint can't begin: %s", problem)
