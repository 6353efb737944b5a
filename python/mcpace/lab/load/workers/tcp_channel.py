"""Channel to a worker that listens: ``mcpace load-worker --listen HOST:PORT``."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import IO

from mcpace.lab.errors import Unreachable
from mcpace.lab.load.workers.channel import ConnectedChannel
from mcpace.lab.load.workers.handshake import HANDSHAKE_LIMIT_S, HandshakeFailure, prove_as_driver

CONNECT_LIMIT_S = 240.0
"""Seconds until a worker listens: a cluster may first pull the image. A worker waits 300 s for its driver."""
TRY_LIMIT_S = 5.0
RETRY_S = 0.5


class TcpChannel(ConnectedChannel):
    """Channel over TCP. Both sides prove that they know the token."""

    start_limit_s = CONNECT_LIMIT_S + 10.0

    def __init__(self, host: str, port: int, token: str) -> None:
        self._host, self._port, self._token = host, port, token
        self._socket: socket.socket | None = None
        super().__init__()

    def send(self, line: bytes) -> None:
        if self._socket is not None:
            self._socket.sendall(line)

    def end_input(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _connect(self) -> IO[bytes]:
        connection = self._open_socket()
        self._socket = connection
        if self._is_closed.is_set():
            self._disconnect()
        connection.settimeout(HANDSHAKE_LIMIT_S)
        try:
            prove_as_driver(connection, self._token)
        except (HandshakeFailure, OSError):
            self._disconnect()
            raise Unreachable(
                f"{self._host}:{self._port} has another token, or is no worker of mcpace that waits for a driver"
            ) from None
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection.makefile("rb")

    def _open_socket(self) -> socket.socket:
        deadline = time.monotonic() + CONNECT_LIMIT_S
        while True:
            try:
                return socket.create_connection((self._host, self._port), TRY_LIMIT_S)
            except OSError as error:
                # The name of a pod resolves, and its port opens, when the pod has started.
                if time.monotonic() > deadline or self._is_closed.wait(RETRY_S):
                    reason = getattr(error, "strerror", None) or error
                    raise Unreachable(f"{self._host}:{self._port} can't be reached: {reason}") from error

    def _disconnect(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
