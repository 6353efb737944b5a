"""TCP addresses on which a process and its descendants listen, from /proc. See proc_pid_net(5) and proc_pid_fd(5)."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

PROC = Path("/proc")
LISTENING = "0A"
"""State of a listening socket in the kernel's tables."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of a table that are read: 100,000 sockets."""

TABLES = (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6))
LOOPBACK_OF = {"0.0.0.0": ("127.0.0.1",), "::": ("::1", "127.0.0.1")}
"""Addresses of loopback at which a socket that listens on all addresses is reached."""
ALL_OF_LOOPBACK = {"127.0.0.1": "0.0.0.0", "::1": "::"}
"""The address of all interfaces, by the address of loopback in the same family."""

Address = tuple[str, int]
"""Host and port, as a client on this machine reaches them."""


def url_port(url: str) -> int:
    """Port of a URL; the usual port of its scheme where the URL names none."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def listening_addresses(pids: Iterable[int], proc: Path = PROC) -> list[Address]:
    """Addresses at which one of the processes is reached from this process, in the order of their ports.

    A socket that listens on all addresses is given as loopback. An address at which another process may answer is left
    out. Processes of other users and of other network namespaces have no addresses.
    """
    inodes = set().union(*(_socket_inodes(proc / str(pid)) for pid in pids))
    if not inodes:
        return []
    own: set[Address] = set()
    foreign: set[Address] = set()
    for name, family in TABLES:
        # The tables of this process: the same address in another network namespace leads elsewhere.
        for address, inode in _listening_sockets(proc / "self" / "net" / name, family):
            (own if inode in inodes else foreign).add(address)
    reached = {(host, port) for listened, port in own for host in LOOPBACK_OF.get(listened, (listened,))}
    certain = [address for address in reached if _is_certain(address, own, foreign)]
    return sorted(certain, key=lambda address: (address[1], address[0]))


def _is_certain(address: Address, own: set[Address], foreign: set[Address]) -> bool:
    """Whether the kernel gives a connection to this address to an own socket: to the one with the closest address."""
    host, port = address
    return address not in foreign and (address in own or (ALL_OF_LOOPBACK.get(host), port) not in foreign)


def _socket_inodes(process: Path) -> set[str]:
    inodes = set()
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                link = str(descriptor.readlink())
                if link.startswith("socket:["):
                    inodes.add(link[len("socket:[") : -1])
    return inodes


def _listening_sockets(table: Path, family: socket.AddressFamily) -> Iterator[tuple[Address, str]]:
    """Address and inode of each listening socket in a table of the kernel."""
    try:
        with table.open(encoding="ascii", errors="replace") as file:
            rows = file.read(MOST_BYTES).splitlines()[1:]
    except OSError:
        return
    for row in rows:
        fields = row.split()
        if len(fields) > 9 and fields[3] == LISTENING:
            packed, _, port = fields[1].partition(":")
            yield (_host(packed, family), int(port, 16)), fields[9]


def _host(packed: str, family: socket.AddressFamily) -> str:
    # The table has words of 32 bits in the order of this machine.
    words = (int(packed[at : at + 8], 16) for at in range(0, len(packed), 8))
    host = socket.inet_ntop(family, b"".join(struct.pack("=I", word) for word in words))
    return host.removeprefix("::ffff:") if "." in host else host
