"""Accuracy of the ledger: a known delay in each layer in turn, and the part to which the ledger attributes it.

A client that is nothing but a socket calls a scripted target through the recorder. Client-side delays are this script's
own; server-side delays are the target's faults. For each layer and size it prints the change that the delay makes in
that layer, the error against what was injected, the largest change in any other layer, and `unaccounted`'s share.
To reach: an error within 5 % or 0.3 ms, `unaccounted` under 5 % of the call.

Base and delayed calls alternate, and medians are compared, so that the machine's drift hits both alike.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcpace import _core

CALLS = 25
DELAYS_MS = (1, 10, 100)
BASE_MS = 5
"""Working time of the tool in every call, so that the share of `unaccounted` is realistic."""


@dataclass(frozen=True)
class Injection:
    """A place for a delay, and the part of the ledger to which it belongs."""

    name: str
    part: str
    fault: str | None = None
    client: str | None = None
    tls: bool = False
    new_connection: bool = False


INJECTIONS = (
    Injection("client before sending", "client.send", client="before"),
    Injection("TLS handshake", "connect", fault="tls-handshake", tls=True, new_connection=True),
    Injection("client half-way through its request", "request", client="within"),
    Injection("dispatch", "server", fault="dispatch"),
    Injection("tool", "server", fault="tool"),
    Injection("reply's head", "server", fault="headers"),
    Injection("reply's first byte", "server", fault="first-byte"),
    Injection("half-way through the result", "response", fault="mid-result"),
    Injection("client after the result", "client.receive", client="after"),
)


@dataclass
class Client:
    """A minimal HTTP/1.1 client for consecutive calls."""

    host: str
    port: int
    path: str
    sock: socket.socket | None = None
    buffer: bytearray = field(default_factory=bytearray)

    def call(self, request: dict, delays: dict[str, float], fresh: bool) -> tuple[int, int]:
        """Posts a request and reads its whole reply. Returns the start and end of the operation, nanoseconds."""
        if fresh:
            self.close()
        start = time.monotonic_ns()
        pause(delays.get("before", 0))
        sock = self.sock or self.open()
        data = self.encode(request)
        if "within" in delays:
            sock.sendall(data[: len(data) // 2])
            pause(delays["within"])
            data = data[len(data) // 2 :]
        sock.sendall(data)
        self.read_reply(sock)
        pause(delays.get("after", 0))
        return start, time.monotonic_ns()

    def open(self) -> socket.socket:
        """Connects."""
        self.sock = socket.create_connection((self.host, self.port), timeout=30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.sock

    def close(self) -> None:
        """Closes the connection."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None
        self.buffer.clear()

    def encode(self, request: dict) -> bytes:
        """A POST with a JSON-RPC body."""
        body = json.dumps(request).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def read_reply(self, sock: socket.socket) -> None:
        """Reads to the end of the body, sized or chunked."""
        while b"\r\n\r\n" not in self.buffer:
            self.more(sock)
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        self.buffer[:] = rest
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(head.decode(errors="replace").splitlines()[0])
        if b"content-length" in headers:
            self.take(sock, int(headers[b"content-length"]))
            return
        while True:
            while b"\r\n" not in self.buffer:
                self.more(sock)
            size, _, rest = bytes(self.buffer).partition(b"\r\n")
            self.buffer[:] = rest
            self.take(sock, int(size, 16) + 2)
            if int(size, 16) == 0:
                return

    def take(self, sock: socket.socket, count: int) -> None:
        """Drops `count` bytes of the stream."""
        while len(self.buffer) < count:
            self.more(sock)
        del self.buffer[:count]

    def more(self, sock: socket.socket) -> None:
        """Reads the available bytes."""
        data = sock.recv(65536)
        if not data:
            raise RuntimeError("the recorder hung up")
        self.buffer += data


def pause(seconds: float) -> None:
    """Sleeps with a precision of a few microseconds: most of the time in the kernel, the rest by polling the clock."""
    end = time.perf_counter() + seconds
    if seconds > 0.0005:
        time.sleep(seconds - 0.0003)
    while time.perf_counter() < end:
        pass


@contextmanager
def setup(injection: Injection, delay_ms: float | None) -> Iterator[tuple[Client, _core.Recorder]]:
    """A target with or without the fault, a recorder in front of it, and a client."""
    faults = [f"{injection.fault}={delay_ms}ms"] if injection.fault and delay_ms else []
    target = _core.Target("simple", faults=faults, tls=injection.tls)
    recorder = _core.Recorder(target.url, extra_root=target.certificate_pem)
    where = urlsplit(recorder.url)
    client = Client(where.hostname or "", where.port or 0, where.path)
    try:
        yield client, recorder
    finally:
        client.close()
        recorder.stop()
        target.stop()


def measure(injection: Injection, delay_ms: float) -> tuple[dict[str, float], dict[str, float]]:
    """Median parts in milliseconds: without the delay, with it."""
    with setup(injection, None) as base, setup(injection, delay_ms) as delayed:
        stamps: list[list[tuple[int, int]]] = [[], []]
        for number in range(CALLS + 1):
            for index, (client, _) in enumerate((base, delayed)):
                delays = {injection.client: delay_ms / 1e3} if injection.client and index else {}
                request = {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": "wait", "arguments": {"ms": BASE_MS}},
                }
                stamps[index].append(client.call(request, delays, injection.new_connection))
        parts = [medians(rec, stamp[1:]) for (_, rec), stamp in zip((base, delayed), stamps, strict=True)]
        return parts[0], parts[1]


def medians(recorder: _core.Recorder, stamps: list[tuple[int, int]]) -> dict[str, float]:
    """Median of each part of the calls' ledgers in milliseconds; `total` is the time of the calls."""
    recording = recorder.stop()
    for start, end in stamps:
        recording.add_call("call", "wait", start, end)
    ledgers = recording.ledgers()
    parts = {name: statistics.median(item["parts"][name] for item in ledgers) / 1e6 for name in ledgers[0]["parts"]}
    parts["total"] = statistics.median(item["end_ns"] - item["start_ns"] for item in ledgers) / 1e6
    return parts


def main() -> int:
    """Prints the table; exits with 1 where a figure is missed."""
    print(f"{CALLS} calls each, medians, milliseconds; the tool itself works {BASE_MS} ms")
    print(
        f"{'injected':<38}{'delay':>6}  {'lands in':<15}{'change':>9}{'error':>8}{'elsewhere':>11}{'unaccounted':>13}"
    )
    missed = 0
    for injection in INJECTIONS:
        for delay in DELAYS_MS:
            base, delayed = measure(injection, delay)
            change = {name: delayed[name] - base[name] for name in base if name != "total"}
            error = change.pop(injection.part) - delay
            elsewhere = max(change.values(), key=abs)
            share = delayed["unaccounted"] / delayed["total"]
            good = abs(error) <= max(0.05 * delay, 0.3) and share < 0.05
            missed += not good
            print(
                f"{injection.name:<38}{delay:>6}  {injection.part:<15}{delay + error:>9.3f}{error:>8.3f}"
                f"{elsewhere:>11.3f}{share:>12.1%}{'' if good else '  missed'}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
