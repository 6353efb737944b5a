"""Proof of both sides of a TCP connection that they know the token, which is never sent.

The worker sends a random number. The driver answers with a random number of its own and a keyed hash (HMAC-SHA-256) of
both; the worker answers with another keyed hash of both. Each side closes the connection where the hash is wrong.

Design constraint: standard library only, as :mod:`.protocol` says. The connection is authenticated and not encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import time
from collections.abc import Mapping

from mcpace.lab.load.workers.protocol import encode_message

TOKEN_VARIABLE = "MCPACE_WORKER_TOKEN"
SHORTEST_TOKEN = 16
HANDSHAKE_LIMIT_S = 5.0
"""Seconds that each message of the handshake may take."""
LONGEST_LINE = 1024
DEFAULT_PORT = 7349


class HandshakeFailure(Exception):
    """The other side does not know the token, or is no program of mcpace."""


def read_worker_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token of workers and driver.

    Raises :class:`ValueError` with a message for the user.
    """
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if len(token) < SHORTEST_TOKEN:
        raise ValueError(
            f"the environment variable {TOKEN_VARIABLE} must hold the token of the workers, with at least "
            f"{SHORTEST_TOKEN} characters"
        )
    return token


def prove_as_worker(connection: socket.socket, token: str) -> None:
    """The worker's side. Raises :class:`HandshakeFailure` or :class:`OSError`."""
    own = secrets.token_hex(32)
    connection.sendall(encode_message("challenge", nonce=own))
    message = _receive_message(connection)
    _check_proof(message, token, "driver", own, message.get("nonce", ""))
    connection.sendall(encode_message("proof", proof=_proof(token, "worker", own, message["nonce"])))


def prove_as_driver(connection: socket.socket, token: str) -> None:
    """The driver's side. Raises :class:`HandshakeFailure` or :class:`OSError`."""
    worker = _receive_message(connection).get("nonce", "")
    own = secrets.token_hex(32)
    connection.sendall(encode_message("proof", nonce=own, proof=_proof(token, "driver", worker, own)))
    _check_proof(_receive_message(connection), token, "worker", worker, own)


def _proof(token: str, side: str, worker: str, driver: str) -> str:
    return hmac.new(token.encode(), f"mcpace {side} {worker} {driver}".encode(), hashlib.sha256).hexdigest()


def _check_proof(message: Mapping[str, str], token: str, side: str, worker: str, driver: str) -> None:
    if not hmac.compare_digest(message.get("proof", "").encode(), _proof(token, side, worker, driver).encode()):
        raise HandshakeFailure


def _receive_message(connection: socket.socket) -> dict[str, str]:
    """One line. It is read byte by byte: the bytes after it belong to the protocol of workers."""
    deadline = time.monotonic() + HANDSHAKE_LIMIT_S
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise HandshakeFailure
        connection.settimeout(left_s)
        part = connection.recv(1)
        if not part or len(line) > LONGEST_LINE:
            raise HandshakeFailure
        line += part
    try:
        message = json.loads(line)
    except ValueError:
        raise HandshakeFailure from None
    if not isinstance(message, dict) or not all(
        isinstance(value, str) and value.isascii() for value in message.values()
    ):
        raise HandshakeFailure
    return message
