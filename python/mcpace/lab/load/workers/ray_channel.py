"""Channel to a worker that is an actor of a Ray cluster (the extra ``mcpace[ray]``).

Placement and the detection of failed nodes are Ray's. An actor that failed is not restarted: its part of the load is
missing, as with all other places.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from typing import IO, Any
from urllib.parse import urlsplit

import ray

from mcpace.lab.errors import Unreachable
from mcpace.lab.load.workers.channel import ConnectedChannel
from mcpace.lab.load.workers.ray_actor import WorkerActor

PLACEMENT_LIMIT_S = 60.0
"""Seconds until the cluster has placed and started the actor."""
CONNECT_LIMIT_S = 30.0
"""Seconds for the connection to the cluster."""
PORT_LIMIT_S = 10.0
LOOK_S = 0.5
AUTOMATIC = "auto"
OUTPUT = "output"
"""Group of the calls that wait for output. Each group has one thread, so calls of a group are made in their order."""

_connecting = threading.Lock()
_failures: dict[str, Unreachable] = {}
"""Clusters that did not answer: only the first worker waits for its cluster."""


class RayChannel(ConnectedChannel):
    """Channel to an actor, which has a processor of the cluster for each thread of the worker."""

    start_limit_s = CONNECT_LIMIT_S + PLACEMENT_LIMIT_S + 15.0

    def __init__(self, address: str, threads: int) -> None:
        connect_cluster(address)
        remote = ray.remote(num_cpus=threads, concurrency_groups={OUTPUT: 1}, max_restarts=0)(WorkerActor)
        # A worker on each node, as long as there are nodes.
        self._actor = remote.options(scheduling_strategy="SPREAD").remote()
        self._threads = threads
        super().__init__()

    def send(self, line: bytes) -> None:
        self._actor.write.remote(line)

    def end_input(self) -> None:
        self._actor.write.remote(b"")

    def _connect(self) -> IO[bytes]:
        deadline = time.monotonic() + PLACEMENT_LIMIT_S
        ready = self._actor.__ray_ready__.remote()
        while not ray.wait([ready], timeout=LOOK_S)[0]:
            if self._is_closed.is_set() or time.monotonic() > deadline:
                raise Unreachable(self._placement_words())
        try:
            ray.get(ready)
        except ray.exceptions.RayError as error:
            raise Unreachable(_error_words(error)) from None
        return io.BufferedReader(_ActorOutput(self._actor))

    def _disconnect(self) -> None:
        with contextlib.suppress(Exception):  # the cluster is gone
            ray.kill(self._actor)

    def _placement_words(self) -> str:
        total, free = (int(found().get("CPU", 0)) for found in (ray.cluster_resources, ray.available_resources))
        return (
            f"the Ray cluster had no place for it within {PLACEMENT_LIMIT_S:.0f} s: a worker needs {self._threads} CPU "
            f"(--threads), and the cluster has {total}, of which {free} are free"
        )


class _ActorOutput(io.RawIOBase):
    """Output of an actor's worker."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            try:
                self._rest = ray.get(self._actor.read.options(concurrency_group=OUTPUT).remote())
            except ray.exceptions.RayError as error:
                raise OSError(_error_words(error)) from None
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def connect_cluster(address: str) -> None:
    """Connects this process to a cluster, once.

    Raises :class:`Unreachable` where there is none.
    """
    with _connecting:
        if address in _failures:
            raise _failures[address]
        if ray.is_initialized():
            return
        failure: list[BaseException] = []

        def connect() -> None:
            try:
                _check_port(address)
                # Ray prints errors of its nodes to stdout, which belongs to the command. It has no option for this.
                ray._private.worker.print_to_stdstream = lambda *_, **__: None
                ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
            except BaseException as error:  # Ray's own errors have no common class.
                failure.append(error)

        # Ray itself waits for minutes.
        thread = threading.Thread(target=connect, name="mcpace-ray", daemon=True)
        thread.start()
        thread.join(CONNECT_LIMIT_S)
        if thread.is_alive():
            problem = Unreachable(f"the Ray cluster {address} did not answer within {CONNECT_LIMIT_S:.0f} s")
        elif failure:
            where = "on this machine" if address == AUTOMATIC else f"at {address}"
            problem = Unreachable(f"there is no Ray cluster {where}: {_error_words(failure[0])}")
        else:
            return
        _failures[address] = problem
        raise problem


def _check_port(address: str) -> None:
    """Raises :class:`OSError` where nothing listens. Ray itself tries for long, and writes to stderr."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), PORT_LIMIT_S).close()


def _error_words(error: BaseException) -> str:
    """The last line of an error, which has the reason: Ray quotes tracebacks before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
