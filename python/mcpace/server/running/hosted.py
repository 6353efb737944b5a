"""The endpoint in somebody else's server: begun with the first request, or when the host says so; ended once.

Design constraint: no loop and no thread of its own. Whoever calls waits: not on an event loop's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mcpace import _core
from mcpace.server.running.addresses import Address
from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.in_process import http_options
from mcpace.server.running.lifespans import Entered
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings


class Hosted:
    """``make`` is called once, before the lifespan is entered."""

    def __init__(self, make: Callable[[], Prepared], settings: Settings) -> None:
        self._make = make
        self._settings = settings
        self._lock = threading.Lock()
        self._entered: Entered | None = None
        self.core: Any = None
        """The compiled part's registry; ``None`` before the beginning."""
        self.endpoint: Any = None
        """What answers requests; ``None`` before the beginning and after the end."""
        self.loopback_only: str | None = None
        """Why other machines are refused, where they are; known from the beginning on."""
        self.has_routes = False
        """Whether the author serves other paths, too."""

    def begin(self) -> Any:
        """The endpoint. Raises :class:`mcpace.server.running.errors.AuthorProblem`, and ``SetupProblem`` where what it
        needs isn't there, such as a store."""
        with self._lock:
            if self._entered is not None:
                return self.endpoint
            try:
                prepared = self._make()
                self.has_routes = "asgi" in prepared.options
                self.loopback_only = prepared.loopback_only
                address = Address(self._settings.host, self._settings.port)
                endpoint = prepared.core.endpoint(http_options(prepared, self._settings, address))
            except _core.EnvironmentProblem as problem:
                raise SetupProblem(str(problem)) from problem
            entered = Entered(prepared)
            entered.__enter__()
            self._entered, self.core, self.endpoint = entered, prepared.core, endpoint
            return endpoint

    def forget(self) -> None:
        """In a forked child, which has none of the threads that this has begun: the next request begins it anew."""
        self._lock = threading.Lock()
        self._entered = self.core = self.endpoint = None

    def end(self) -> None:
        """Leaves the lifespan. Does nothing the second time."""
        with self._lock:
            entered, self._entered, self.endpoint = self._entered, None, None
        if entered is not None:
            entered.__exit__(None, None, None)
