"""The inspector of a running process of Node.js: opens it, sends commands over its WebSocket, and closes it again.

Node.js opens the inspector on 127.0.0.1 at SIGUSR1. An inspector that was open before stays open.

Design constraints: SIGUSR1 ends a process that has no handler for it, so the handler is looked for first. Another
program may listen at the inspector's usual port, so an address counts only while a socket of the process listens
there. All waits and sizes are bounded.

Deliberately absent: moving an inspector to another port. A process that closes and reopens it may crash.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from threading import Timer
from typing import Any

from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.inside.process_facts import (
    PROC,
    command_words,
    environment_value,
    handles_signal,
    open_process,
    process_runtime,
    send_signal,
    shares_namespace,
)
from mcpace.lab.inside.runtimes import Runtime
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.listening_sockets import Address, listening_addresses

USUAL_PORT = 9229
PORT_OPTION = re.compile(r"--(?:inspect-port|debug-port)[= ](?:\S*:)?(\d+)(?=\s|$)")
OPEN_LIMIT_S = 10.0
"""Time in which a process opens or closes its inspector."""
ANSWER_LIMIT_S = 3.0
"""Time for an answer over HTTP, and for the handshake of the WebSocket."""
CALL_LIMIT_S = 20.0
"""Time for the answer to a command. A process that blocks in a system call answers after it."""
LOOK_PERIOD_S = 0.01
MOST_LIST_BYTES = 1 << 20
MOST_MESSAGE_BYTES = 128 << 20
SESSION_PATH = re.compile(r"/[0-9a-f-]{36}")
"""Path of the WebSocket, which is random."""
CLOSE = "(() => { const own = require('inspector'); try { process.debugPort = %d; } catch {} own.close(); })()"


Found = tuple[Address, str]
"""Address of an inspector, and the path of its WebSocket."""


class InspectorSession:
    """A WebSocket to the inspector of one process, which speaks the Chrome DevTools Protocol."""

    def __init__(self, pid: int, address: Address, path: str) -> None:
        """Raises :class:`LabError` where the process does not answer, or has closed the inspector."""
        # Imported late, since few commands need it.
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        self._pid = pid
        self._failures = (WebSocketException, OSError, EOFError, ValueError, RecursionError)
        self._last = 0
        host, port = address
        with ExitStack() as stack, self._as_lab_errors():
            connection = stack.enter_context(socket.create_connection(address, ANSWER_LIMIT_S))
            if address not in listening_addresses([pid]):
                raise LabError(f"process {pid} has closed its inspector")
            self._socket = stack.enter_context(
                connect(
                    f"ws://{f'[{host}]' if ':' in host else host}:{port}{path}",
                    sock=connection,
                    # Node.js takes frames of text and of the end only.
                    ping_interval=None,
                    compression=None,
                    proxy=None,
                    open_timeout=ANSWER_LIMIT_S,
                    close_timeout=ANSWER_LIMIT_S,
                    max_size=MOST_MESSAGE_BYTES,
                )
            )
            self._stack = stack.pop_all()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command. Raises :class:`LabError` where there is none."""
        self._last += 1
        deadline = time.monotonic() + CALL_LIMIT_S
        with self._as_lab_errors():
            self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
            while (left_s := deadline - time.monotonic()) > 0:
                answer = json.loads(self._socket.recv(timeout=left_s))
                if isinstance(answer, dict) and answer.get("id") == self._last:
                    break
            else:
                raise TimeoutError
        result = answer.get("result")
        if not isinstance(result, dict):
            raise LabError(f"the inspector of process {self._pid} refused {method}")
        return result

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, in which ``require`` is known. Raises :class:`LabError`."""
        answer = self.call("Runtime.evaluate", expression=expression, includeCommandLineAPI=True, returnByValue=True)
        result = answer.get("result")
        if "exceptionDetails" in answer or not isinstance(result, dict):
            raise LabError(f"process {self._pid} does not run commands of its inspector")
        return result.get("value")

    def close(self) -> None:
        """Closes the connection. Closing twice is harmless."""
        with contextlib.suppress(*self._failures):
            self._stack.close()

    @contextlib.contextmanager
    def _as_lab_errors(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise LabError(
                f"process {self._pid} did not answer its inspector in time: its main thread is blocked"
            ) from error
        except self._failures as error:
            why = "" if (PROC / str(self._pid)).exists() else ": it has ended"
            raise LabError(f"the connection to the inspector of process {self._pid} was lost{why}") from error


class NodeInspector:
    """The inspector of one process, open from its creation until it is closed."""

    def __init__(self, pid: int, served: int) -> None:
        """Opens the inspector of ``pid``, unless it is open. ``served`` is the port at which the process serves MCP.

        Raises as :func:`check_inspector` does, and :class:`LabError` where the process does not open its inspector.
        """
        self._pid = pid
        self._port = check_inspector(pid, served)
        """Port of the inspector that is opened here; ``None`` where it was open before."""
        self._before = set(listening_addresses([pid]))
        self._found: Found | None = None
        self._session: InspectorSession | None = None
        try:
            if self._port is None:
                self._found = _find_inspector(_other_addresses(pid, served))
            else:
                with defer_interrupt():
                    self._found = self._await_inspector()
            self._session = self._connect()
        except BaseException:
            self.close()
            raise

    @property
    def session(self) -> InspectorSession:
        """The session for commands."""
        assert self._session is not None, "the session is made at creation"
        return self._session

    def close(self) -> str:
        """Ends the session, and closes the inspector if it was opened here. Closing twice is harmless.

        Returns the reason where the inspector stays open; empty otherwise.
        """
        (port, self._port), (session, self._session) = (self._port, None), (self._session, None)
        if port is not None:
            # The process may have opened it after the limit.
            self._found = _find_inspector(set(listening_addresses([self._pid])) - self._before)
        if port is None or self._found is None:
            if session is not None:
                session.close()
            return ""
        address = self._found[0]
        # The second session is for the case that the first one was lost.
        for _ in range(2):
            with contextlib.suppress(LabError):
                session = session or self._connect()
                session.evaluate(CLOSE % port)
            if session is not None:
                session.close()
                session = None
            if _await(lambda: address not in listening_addresses([self._pid]), OPEN_LIMIT_S):
                return ""
        return f"the inspector of process {self._pid} could not be closed: restart the process to close it"

    def _await_inspector(self) -> Found:
        """The inspector that the process opens at a signal. Raises :class:`LabError`."""
        self._signal()
        found: Found | None = None

        def is_open() -> bool:
            # The process may also open other sockets, and an inspector does not answer at once.
            nonlocal found
            found = _find_inspector(set(listening_addresses([self._pid])) - self._before)
            return found is not None

        _await(is_open, OPEN_LIMIT_S)
        if found is None:
            raise LabError(
                f"--pid: process {self._pid} did not open its inspector in {OPEN_LIMIT_S:g} s: it handles SIGUSR1 "
                "itself, another program took the port, or its main thread is blocked; in the last case the inspector "
                "opens later, until the process is restarted"
            )
        return found

    def _signal(self) -> None:
        """Has the process open its inspector."""
        process = open_process(self._pid)
        try:
            # The number may belong to another process by now.
            if process_runtime(self._pid) is Runtime.NODE and handles_signal(self._pid, "SIGUSR1"):
                send_signal(process, "SIGUSR1")
        finally:
            os.close(process)

    def _connect(self) -> InspectorSession:
        if self._found is None:
            raise LabError(f"process {self._pid} has closed its inspector")
        return InspectorSession(self._pid, *self._found)


def check_inspector(pid: int, served: int) -> int | None:
    """The port at which a process will open its inspector; ``None`` where it is open.

    Raises :class:`UsageProblem` where the process can't open it, and :class:`LabError` where that is unknown.
    """
    if not shares_namespace(pid, "net"):
        raise LabError(f"--pid: process {pid} runs in a network of its own, such as a container's: run mcpace in there")
    if not os.access(PROC / str(pid) / "fd", os.R_OK):
        raise LabError(f"--pid: the kernel doesn't let mcpace read process {pid}: run mcpace as root")
    if _find_inspector(_other_addresses(pid, served)) is not None:
        return None
    if not handles_signal(pid, "SIGUSR1"):
        raise UsageProblem(
            f"--pid: process {pid} can't open its inspector, because it was started with --disable-sigusr1 or is still "
            "starting: start it with --inspect, or let mcpace start it (serve:COMMAND --inside)"
        )
    # The command line has precedence.
    options = " ".join([environment_value(pid, "NODE_OPTIONS") or "", *command_words(pid)])
    ports = PORT_OPTION.findall(options)
    port = int(ports[-1]) if ports else USUAL_PORT
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except (OSError, OverflowError):
        raise UsageProblem(
            f"--pid: another program uses port {port}, at which process {pid} would open its inspector: end that "
            "program, or start the server with --inspect-port=0"
        ) from None
    return port


def _other_addresses(pid: int, served: int) -> set[Address]:
    """Addresses at which a process listens, without those at which it serves MCP."""
    return {address for address in listening_addresses([pid]) if address[1] != served}


def _find_inspector(addresses: Iterable[Address]) -> Found | None:
    """Address and path of the inspector that answers at one of the addresses; ``None`` where none does."""
    found = ((address, _session_path(address)) for address in sorted(addresses))
    return next((one for one in found if one[1]), None)


def _session_path(address: Address) -> str:
    """Path of the WebSocket at an inspector's address; empty where something else listens there."""
    connection = http.client.HTTPConnection(*address, timeout=ANSWER_LIMIT_S)
    end: Timer | None = None
    try:
        connection.connect()
        end = Timer(ANSWER_LIMIT_S, _end_connection, [connection.sock])
        end.daemon = True
        end.start()
        connection.request("GET", "/json/list")
        targets = json.loads(connection.getresponse().read(MOST_LIST_BYTES))
        path = f"/{targets[0]['id']}" if "devtoolsFrontendUrl" in targets[0] else ""
    except (OSError, http.client.HTTPException, ValueError, TypeError, LookupError, RecursionError):
        return ""
    finally:
        if end is not None:
            end.cancel()
        connection.close()
    return path if SESSION_PATH.fullmatch(path) else ""


def _end_connection(peer: socket.socket) -> None:
    """Ends a wait for the peer in another thread."""
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)


def _await(happened: Callable[[], bool], limit_s: float) -> bool:
    """Waits until something has happened, which nothing reports. Returns whether it has."""
    deadline = time.monotonic() + limit_s
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_PERIOD_S)
    return True
