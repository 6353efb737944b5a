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
from mcpace.server.running.lifespans import RunningLifespan
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings

NOT_YET = "the endpoint can't begin at the moment"
"""The text of the 503 that clients receive."""


@dataclass(frozen=True)
class StartedEndpoint:
    """The parts of a started endpoint."""

    core: Any
    """The compiled part's registry."""
    endpoint: Any
    """Answers requests."""
    loopback_only: str | None
    """The reason why requests of other machines are refused; ``None`` if they are accepted."""
    beside: Any
    """The ASGI application of the author's custom routes; ``None`` where there are none."""
    entered: RunningLifespan


class EmbeddedEndpoint:
    """``make`` is called once, before the lifespan is entered."""

    def __init__(self, make: Callable[[], Prepared], settings: Settings) -> None:
        self._make = make
        self._settings = settings
        self._lock = threading.Lock()
        self._attempt: Future[StartedEndpoint] | None = None
        self._said: str | None = None
        self.begun: StartedEndpoint | None = None
        """``None`` before the start and after the end."""

    def begin(self) -> StartedEndpoint:
        """Starts the endpoint. Must not run on an event loop's thread. Raises
        :class:`mcpace.server.running.errors.AuthorProblem`, and ``SetupProblem`` if a required service, such as a
        store, is missing."""
        attempt, is_new = self._join_attempt()
        if is_new:
            self._attempt_start(attempt)
        return attempt.result()

    async def begin_on_loop(self) -> StartedEndpoint:
        """Starts the endpoint from an event loop's thread. All waiting tasks share one new thread, because the threads
        of the loop's executor belong to the host."""
        attempt, is_new = self._join_attempt()
        if is_new:
            # The attempt outlives a request whose client disconnects, since other requests wait for it.
            threading.Thread(target=self._attempt_start, args=(attempt,), name="mcpace-begin", daemon=True).start()
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

    def _join_attempt(self) -> tuple[Future[StartedEndpoint], bool]:
        with self._lock:
            if self._attempt is not None:
                return self._attempt, False
            self._attempt = Future()
            # A caller that is cancelled does not end the attempt for the others.
            self._attempt.set_running_or_notify_cancel()
            return self._attempt, True

    def _attempt_start(self, attempt: Future[StartedEndpoint]) -> None:
        try:
            begun = self._start_endpoint()
        except BaseException as problem:
            with self._lock:
                if self._attempt is attempt:
                    self._attempt = None
            self._log_failure(problem)
            attempt.set_exception(problem)
        else:
            self._said = None
            self.begun = begun
            attempt.set_result(begun)

    def _start_endpoint(self) -> StartedEndpoint:
        try:
            prepared = self._make()
            address = Address(self._settings.host, self._settings.port)
            endpoint = prepared.core.endpoint(http_options(prepared, self._settings, address))
        except _core.EnvironmentProblem as problem:
            raise SetupProblem(str(problem)) from problem
        entered = RunningLifespan(prepared)
        entered.__enter__()
        return StartedEndpoint(prepared.core, endpoint, prepared.loopback_only, prepared.options.get("asgi"), entered)

    def _log_failure(self, problem: BaseException) -> None:
        """Logs a failed start once, not for each request. The host reports exceptions of the author's code."""
        if isinstance(problem, SetupProblem) and str(problem) != self._said:
            self._said = str(problem)
            logger.error("the MCP endpoint can't begin: %s", problem)
