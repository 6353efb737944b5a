"""TCP addresses on which a process and its descendants listen, from /proc. See proc_pid_net(5) and proc_pid_fd(5)."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
LISTENING = "0A"
"""State of a listening socket in the kernel's tables."""
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of a table that are read: 100,000 sockets."""

Address = tuple[str, int]
"""Host and port, as a client on this machine reaches them."""


def listening_addresses(pids: Iterable[int], proc: Path = PROC) -> list[Address]:
    """Addresses on which one of the processes listens, in the order of their ports.

    A socket that listens on all addresses is given as loopback. Processes of other users have no addresses.
    """
    addresses = set()
    for pid in pids:
        if inodes := _socket_inodes(proc / str(pid)):
            for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
                addresses |= _listening_in(proc / str(pid) / "net" / name, family, inodes)
    return sorted(addresses, key=lambda address: (address[1], address[0]))


def _socket_inodes(process: Path) -> set[str]:
    inodes = set()
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                link = str(descriptor.readlink())
                if link.startswith("socket:["):
                    inodes.add(link[len("socket:[") : -1])
    return inodes


def _listening_in(table: Path, family: socket.AddressFamily, inodes: set[str]) -> set[Address]:
    try:
        with table.open(encoding="ascii", errors="replace") as file:
            rows = file.read(MOST_BYTES).splitlines()[1:]
    except OSError:
        return set()
    addresses = set()
    for row in rows:
        fields = row.split()
        if len(fields) > 9 and fields[3] == LISTENING and fields[9] in inodes:
            packed, _, port = fields[1].partition(":")
            addresses.add((_reachable_host(packed, family), int(port, 16)))
    return addresses


def _reachable_host(packed: str, family: socket.AddressFamily) -> str:
    # The table has words of 32 bits in the order of this machine.
    words = (int(packed[at : at + 8], 16) for at in range(0, len(packed), 8))
    host = socket.inet_ntop(family, b"".join(struct.pack("=I", word) for word in words))
    return {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
