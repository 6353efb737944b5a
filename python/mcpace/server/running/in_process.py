"""Serving in this process: over HTTP until a signal comes, over stdio until stdin ends.

Design constraint: the main thread only waits, for signals and for the end. Requests are handled on the runtime's
threads and, where the author's code is asynchronous, on its one event loop.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from mcpace import _core
from mcpace.server.running.addresses import Address, ReservedPort
from mcpace.server.running.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    RunProblem,
    SetupProblem,
    UsageProblem,
)
from mcpace.server.running.lifespans import RunningLifespan
from mcpace.server.running.messages import say
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings
from mcpace.server.running.signals import STOPPING, Arrivals, catch_signals

Family = tuple[int, list[str]]
"""The index of this process among several, and the sockets on which each of them receives forwarded requests."""

LINGER_S = 3.0
"""How long the author's threads may delay the exit."""


def serve_http(
    prepared: Prepared,
    settings: Settings,
    address: Address,
    on_ready: Callable[[str], None],
    *,
    family: Family | None = None,
) -> int:
    """Serves until a signal comes; returns the exit code. ``on_ready`` gets the endpoint's URL.

    A process of a group shares the port and reacts to the first signal only: its parent kills it if it takes too long.
    """
    has_parent = family is not None
    served = HttpServer(prepared, settings, address, family)
    # RunningLifespan before signals are taken over, so that Ctrl-C can interrupt a lifespan that hangs.
    served.enter()
    with catch_signals(STOPPING) as signals:
        on_ready(served.begin())
        first = _wait(signals)
        if not has_parent and settings.graceful_timeout_s:
            again = "Ctrl-C again ends" if first == signal.SIGINT else "another signal ends"
            say(f"stopping: calls in flight have up to {settings.graceful_timeout_s:g} s; {again} at once")
        cut = _end_within_limit(served, None if has_parent else signals)
        if cut:
            say(f"cut off {cut} connection{'s' if cut > 1 else ''} with calls that did not finish in time")
    return EXIT_INTERRUPTED if first == signal.SIGINT else EXIT_DONE


class HttpServer:
    """A server over HTTP, including its lifespan. The methods block, so they must not run on an event loop's thread."""

    def __init__(self, prepared: Prepared, settings: Settings, address: Address, family: Family | None = None) -> None:
        if prepared.loopback_only is not None and not address.is_loopback:
            raise UsageProblem(f"{address.host} can't be listened on: {prepared.loopback_only}")
        self._prepared = prepared
        self._settings = settings
        self._address = address
        self._options = http_options(prepared, settings, address, family)
        self._entered = RunningLifespan(prepared)
        self._running: _core.Running | None = None

    def enter(self) -> None:
        """Enters the lifespan. Raises :class:`AuthorProblem`."""
        self._entered.__enter__()

    def begin(self) -> str:
        """Starts to accept requests. Returns the endpoint's URL. Raises :class:`RunProblem` if the address can't be
        used."""
        try:
            self._running = self._prepared.core.serve_http(self._options)
        except _core.Problem as problem:
            self._entered.__exit__(None, None, None)
            raise _listen_error(problem, self._address) from problem
        return url(self._settings, Address(self._address.host, self._running.port))

    def end(self) -> int:
        """Stops accepting requests, waits for those in flight, and leaves the lifespan. Returns how many connections
        were cut. Raises :class:`AuthorProblem`."""
        cut = self._running.stop() if self._running is not None else 0
        self._entered.__exit__(None, None, None)
        return cut


def serve_stdio(prepared: Prepared, on_ready: Callable[[], None]) -> int:
    """Serves until stdin ends; returns the exit code."""
    with RunningLifespan(prepared):
        on_ready()
        prepared.core.serve_stdio()
    return EXIT_DONE


@contextlib.contextmanager
def stdio_kept() -> Iterator[None]:
    """Replaces stdout by stderr and stdin by an empty input, because the protocol uses both."""
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            os.dup2(nothing, 1)
        yield
    finally:
        sys.stdout.flush()
        for place, descriptor in enumerate(kept):
            os.dup2(descriptor, place)
            os.close(descriptor)
        os.close(nothing)


def exit_process(code: int) -> NoReturn:
    """Ends the process although threads still run in it: a call that was cut off may occupy its thread for ever."""
    timer = threading.Timer(LINGER_S, _end_at_once, (code,))
    timer.daemon = True
    timer.start()
    sys.exit(code)


def http_options(prepared: Prepared, settings: Settings, address: Address, family: Family | None = None) -> Any:
    """The runtime's options for these settings.

    Raises :class:`SetupProblem` if the certificate can't be read, :class:`UsageProblem` for an invalid option.
    """
    given: dict[str, Any] = dict(prepared.options)
    limits = {
        "body": settings.max_body,
        "sessions": settings.max_sessions,
        "session_idle_s": settings.session_idle_s,
        "session_life_s": settings.session_life_s,
    }
    if settings.retry_s is not None:
        given["retry_s"] = settings.retry_s
    for names in ("allowed_hosts", "allowed_origins"):
        given[names] = [*given.get(names, ()), *getattr(settings, names)]
    try:
        return _core.HttpOptions(
            **given
            | {
                "host": address.host,
                "port": address.port,
                "path": settings.path,
                "response": "json" if settings.json_response else settings.response,
                "stateless": settings.stateless,
                "shared_port": family is not None,
                "family": family,
                "tls": _tls_options(settings),
                "server_timing": settings.server_timing,
                "access_log": settings.access_log,
                "legacy_sse": settings.transport == "sse",
                "store": settings.store,
                "on_store_down": settings.on_store_down,
                "store_prefix": settings.prefix_for(prepared.name),
                "grace_s": settings.graceful_timeout_s,
                "limits": {name: limit for name, limit in limits.items() if limit is not None},
            }
        )
    except _core.UsageProblem as problem:
        raise UsageProblem(str(problem)) from problem


def url(settings: Settings, address: Address) -> str:
    """The URL at which clients reach the endpoint."""
    scheme = "https" if settings.ssl_certfile else "http"
    return f"{scheme}://{address}{'/sse' if settings.transport == 'sse' else settings.path}"


def _wait(signals: Arrivals) -> signal.Signals:
    while True:
        select.select([signals], [], [])
        for number in signals.take():
            if number in STOPPING:
                return number


def _end_within_limit(served: HttpServer, signals: Arrivals | None) -> int:
    """Ends the server within its time limit, or at once after another signal. Returns how many connections were cut."""
    outcome: concurrent.futures.Future[int] = concurrent.futures.Future()
    done, told = socket.socketpair()

    def end() -> None:
        try:
            outcome.set_result(served.end())
        except BaseException as error:
            outcome.set_exception(error)
        told.send(b"x")

    with done, told:
        threading.Thread(target=end, name="mcpace-stop", daemon=True).start()
        readers: list[Any] = [done] if signals is None else [done, signals]
        while not outcome.done():
            ready, _, _ = select.select(readers, [], [])
            if signals in ready and signals is not None and any(number in STOPPING for number in signals.take()):
                _end_at_once(EXIT_INTERRUPTED)
    return outcome.result()


def _end_at_once(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(code)


def _tls_options(settings: Settings) -> tuple[bytes, bytes] | None:
    if settings.ssl_certfile is None or settings.ssl_keyfile is None:
        return None
    return _read_file(settings.ssl_certfile, "certificate"), _read_file(settings.ssl_keyfile, "key")


def _read_file(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SetupProblem(f"the {what} {path} can't be read: {error.strerror}") from error


def _listen_error(problem: _core.Problem, address: Address) -> RunProblem:
    if isinstance(problem, _core.UsageProblem):
        return UsageProblem(str(problem))
    try:
        # The reason has the wording of a parent of several processes.
        ReservedPort(address).close()
    except SetupProblem as same:
        return same
    return SetupProblem(str(problem))
