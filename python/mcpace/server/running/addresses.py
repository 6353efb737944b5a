"""Addresses to listen on: parsing them, and checking that they are free before any worker is started."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from dataclasses import dataclass
from typing import Self

from mcpace.server.running.errors import SetupProblem, UsageProblem


def is_loopback(host: str) -> bool:
    """Whether a literal address is this machine's own. A socket of both families shows IPv4 as ``::ffff:127.0.0.1``."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@dataclass(frozen=True, slots=True)
class Address:
    """An address of this machine, resolved."""

    host: str
    """A literal IPv4 or IPv6 address."""
    port: int

    @classmethod
    def resolved(cls, host: str, port: int) -> Self:
        """The address that this name or literal stands for.

        Raises :class:`SetupProblem` where it stands for none.
        """
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (socket.gaierror, UnicodeError) as error:
            raise SetupProblem(f"there is no host {host!r} to listen on: {error}") from error
        return cls(str(found[0][4][0]), port)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    @property
    def is_any(self) -> bool:
        """Whether it stands for all of this machine's addresses."""
        return self.host in ("0.0.0.0", "::")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ReservedPort:
    """A reserved port: bound but not listened on, so that only workers receive connections. The system lets only
    processes of the same user share it (``SO_REUSEPORT``).
    """

    def __init__(self, address: Address) -> None:
        """Raises :class:`SetupProblem` if the port is in use, or this user may not use it. Raises :class:`UsageProblem`
        on Windows.
        """
        # Bound without SO_REUSEPORT first: with it, a port of another mcpace server would look free.
        self.address = Address(address.host, _free_port(address))
        self._socket = _new_socket(self.address)
        try:
            _share_port(self._socket)
        except UsageProblem:
            self._socket.close()
            raise
        _bind_socket(self._socket, self.address)

    def close(self) -> None:
        """Releases the port."""
        self._socket.close()


def check_workers() -> None:
    """Raises :class:`UsageProblem` on a system that doesn't spread connections over the processes of one port."""
    if sys.platform == "darwin":
        raise UsageProblem(
            "several workers need Linux, because macOS gives all connections of a port to one of its processes: "
            "serve with one worker and more threads"
        )


def _share_port(made: socket.socket) -> None:
    """Lets other processes of this user bind the port as well. Raises :class:`UsageProblem` on Windows."""
    if sys.platform == "win32":
        raise UsageProblem(
            "several workers need Linux, and --reload needs Linux or macOS, because Windows can't share a port between "
            "processes: serve with one worker and more threads"
        )
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _free_port(address: Address) -> int:
    """Binds for a moment and returns the port."""
    with _new_socket(address) as made:
        _bind_socket(made, address)
        return int(made.getsockname()[1])


def _new_socket(address: Address) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    # Lingering connections of an earlier server must not prevent the bind.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _bind_socket(made: socket.socket, address: Address) -> None:
    try:
        made.bind((address.host, address.port))
    except OSError as error:
        raise SetupProblem(refusal(address, error)) from error


def refusal(address: Address, error: OSError) -> str:
    """A sentence that says why an address can't be listened on."""
    if error.errno == errno.EADDRINUSE:
        return f"{address} is in use by another program: end that one, or choose another port (--port 0: any free one)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{address} is not open to this user: ports under 1024 are the system's, choose another (--port 8000)"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{address.host} is no address of this machine: choose one that is (--host 127.0.0.1, 0.0.0.0 for all)"
    return f"{address} can't be listened on: {os.strerror(error.errno or 0)}"
