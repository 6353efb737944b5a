"""A second network namespace on this machine, and the road to it: TUN devices with a delay and a rate between them.

A socket of the far namespace belongs to this process like any other. Packets between the two namespaces pass a thread
that delays them; nftables in the far namespace drops some. Its addresses are for benchmarks (RFC 2544, appendix C).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import fcntl
import functools
import itertools
import os
import selectors
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from support.commands import LIMIT_S

T = TypeVar("T")
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LARGEST_PACKET = 65_536
TOOLS = {
    name: shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") for name in ("ip", "nft")
}
HOOKS = ("input", "output")
NEEDS = "network namespaces need root, /dev/net/tun, ip and nft"
_numbers = itertools.count()


@dataclass(frozen=True)
class Road:
    """How packets travel between the namespaces."""

    delay_s: float = 0.0
    """Each way."""
    bytes_per_s: float | None = None
    """Each way; ``None`` for no limit."""


@dataclass(frozen=True)
class Network:
    """The near and the far end."""

    near: str
    far: str
    name: str
    threads: ThreadPoolExecutor

    def listen(self) -> socket.socket:
        """A listening socket in the far namespace."""

        def bound() -> socket.socket:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind((self.far, 0))
            listener.listen(256)
            return listener

        return self._in_far(bound)

    def drop_requests(self, port: int, one_in: int) -> None:
        """Drops every n-th segment with data that arrives at a port of the far namespace."""
        rules = (
            "add table inet loss; add chain inet loss arriving { type filter hook input priority 0; }; "
            f"add rule inet loss arriving tcp dport {port} tcp flags & psh == psh "
            f"numgen inc mod {one_in} == {one_in - 1} drop"
        )
        self._in_far(lambda: run_tool(find_tool("nft"), rules))

    def lose_packets(self, share: float) -> None:
        """Loses a share of all packets that arrive at the far namespace and that leave it, by chance."""
        lost = f"numgen random mod 1000 < {round(share * 1000)} drop"
        self._add_rules("chance", "".join(f"add rule inet chance {hook} {lost}; " for hook in HOOKS))

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Drops all packets to and from the far namespace."""
        self._add_rules("cut", "".join(f"add rule inet cut {hook} drop; " for hook in HOOKS))
        try:
            yield
        finally:
            self._in_far(lambda: run_tool(find_tool("nft"), "delete table inet cut"))

    def enter_command(self) -> tuple[str, ...]:
        """The words before a command that is to run in the far namespace."""
        return (find_tool("ip"), "netns", "exec", self.name)

    def processes(self) -> list[int]:
        """Processes of the far namespace."""
        command = [find_tool("ip"), "netns", "pids", self.name]
        listed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
        return [int(word) for word in listed.stdout.split()]

    def _add_rules(self, table: str, rules: str) -> None:
        chains = "".join(f"add chain inet {table} {hook} {{ type filter hook {hook} priority 0; }}; " for hook in HOOKS)
        self._in_far(lambda: run_tool(find_tool("nft"), f"add table inet {table}; {chains}{rules}"))

    def _in_far(self, make: Callable[[], T]) -> T:
        return self.threads.submit(make).result(LIMIT_S)


@contextmanager
def connect_network(road: Road | None = None, host: int = 2) -> Iterator[Network]:
    """Makes a far namespace and the road to it, and removes both.

    Several networks have one near address, and far addresses by their ``host``.
    """
    ip = find_tool("ip")
    name = f"mcp{os.getpid()}n{next(_numbers)}"
    near, far = (f"198.18.{os.getpid() % 250}.{own}" for own in (1, host))
    with ExitStack() as stack:
        run_tool(ip, "netns", "add", name)
        stack.callback(run_tool, ip, "netns", "del", name)
        ends = [stack.enter_context(open_tun(f"{name}{end}"[-15:])) for end in "ab"]
        run_tool(ip, "link", "set", ends[1].device, "netns", name)
        for end, own, peer, place in ((ends[0], near, far, []), (ends[1], far, near, ["-n", name])):
            run_tool(ip, *place, "address", "add", own, "peer", peer, "dev", end.device)
            run_tool(ip, *place, "link", "set", end.device, "up")
        stack.enter_context(forward_packets(ends[0].file, ends[1].file, road or Road()))
        # Sockets of the far namespace are made by a thread that is there for good.
        threads = stack.enter_context(ThreadPoolExecutor(1, initializer=enter_namespace, initargs=(name,)))
        yield Network(near, far, name, threads)


@dataclass(frozen=True)
class Tun:
    """A TUN device and the file of its packets."""

    device: str
    file: int


@contextmanager
def open_tun(device: str) -> Iterator[Tun]:
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH14x", device.encode(), IFF_TUN | IFF_NO_PI))
        yield Tun(device, file)
    finally:
        os.close(file)


@contextmanager
def forward_packets(near: int, far: int, road: Road) -> Iterator[None]:
    """Carries packets between two devices until the end, on a thread."""
    read, write = os.pipe()
    thread = threading.Thread(target=_forward_until, args=(read, {near: far, far: near}, road), daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(write)
        thread.join(LIMIT_S)
        os.close(read)


def _forward_until(stop: int, other: dict[int, int], road: Road) -> None:
    # Both ways have one delay, so packets leave in the order in which they came, except for the wait of the rate.
    queues: dict[int, collections.deque[tuple[float, bytes]]] = {end: collections.deque() for end in other}
    free_at = dict.fromkeys(other, 0.0)
    with selectors.DefaultSelector() as selector:
        for file in (stop, *other):
            selector.register(file, selectors.EVENT_READ)
        while True:
            due = min((queue[0][0] for queue in queues.values() if queue), default=None)
            ready = selector.select(None if due is None else max(due - time.monotonic(), 0.0))
            for key, _ in ready:
                if key.fd == stop:
                    return
                with contextlib.suppress(BlockingIOError):
                    packet = os.read(key.fd, LARGEST_PACKET)
                    sent_at = max(time.monotonic(), free_at[key.fd])
                    free_at[key.fd] = sent_at + (len(packet) / road.bytes_per_s if road.bytes_per_s else 0.0)
                    queues[key.fd].append((free_at[key.fd] + road.delay_s, packet))
            now = time.monotonic()
            for end, queue in queues.items():
                while queue and queue[0][0] <= now:
                    with contextlib.suppress(OSError):  # The device is down, or its queue is full: a packet is lost.
                        os.write(other[end], queue[0][1])
                    queue.popleft()


def enter_namespace(name: str) -> None:
    """Moves the calling thread into a network namespace (setns(2)); Python has a function for it from 3.12 on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open("rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"no way into the network namespace {name}")


def find_tool(name: str) -> str:
    path = TOOLS[name]
    assert path is not None, NEEDS
    return path


def run_tool(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=LIMIT_S)


@functools.cache
def has_namespaces() -> bool:
    """Whether this machine lets us make namespaces, TUN devices and rules of nftables."""
    if os.geteuid() != 0 or not os.access("/dev/net/tun", os.W_OK) or not all(TOOLS.values()):
        return False
    try:
        with connect_network() as network:
            network.drop_requests(port=9, one_in=2)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
