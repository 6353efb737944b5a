"""The worker's side of a load: takes a part of the plan from the driver, runs the engine, and reports each second.

Design constraint: standard library and engine only, as :mod:`.protocol` says. A worker without its driver ends: at the
end of its stdin, and during the load after :data:`SILENCE_LIMIT_S` seconds without a message. A thread ends the process
where a write to the driver waits for longer than that, as it may behind a broken network.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any
from urllib.parse import urlsplit

from mcpace import __version__, _core
from mcpace.lab.load.workers.protocol import PROTOCOL, SILENCE_LIMIT_S, encode_message

LOOK_S = 0.05
"""Seconds between two polls of the engine."""
END_LIMIT_S = 5.0
"""Seconds that the engine may take to end after a stop, beyond the time for calls in flight."""
REACH_LIMIT_S = 10.0
WATCH_S = 1.0
"""Seconds between two checks of the driver's silence while the engine does not run."""
WAIT_LIMIT_S = 300.0
"""Seconds without a message before the load, while the driver prepares other workers."""

Message = dict[str, Any]


class DriverGone(Exception):
    """The driver closed the connection, or is silent."""


def run_worker() -> None:
    """Serves one load over stdin and stdout."""
    with _own_stdout() as out:
        serve_driver(sys.stdin.buffer, out)


def serve_driver(source: IO[bytes], out: IO[bytes]) -> None:
    """Serves one load of a driver, to its end or to the driver's."""
    conversation = _Conversation(source, out)
    with suppress(DriverGone, ConnectionError):
        _serve_load(conversation)


class _Conversation:
    """Messages from and to the driver. A thread reads, so that a load can be stopped at any time."""

    def __init__(self, source: IO[bytes], out: IO[bytes]) -> None:
        self._source = source
        self._out = out
        self._sending = threading.Lock()
        self._inbox: queue.Queue[Message | None] = queue.Queue()
        self._heard = time.monotonic()
        self.silence_limit_s = WAIT_LIMIT_S
        threading.Thread(target=self._read_messages, name="mcpace-driver", daemon=True).start()
        threading.Thread(target=self._end_abandoned, name="mcpace-watchdog", daemon=True).start()

    def send(self, kind: str, **members: Any) -> None:
        line = encode_message(kind, **members)
        with self._sending:
            self._out.write(line)
            self._out.flush()

    def receive(self, limit_s: float) -> Message | None:
        """The next message; ``None`` where none arrives in time.

        Raises :class:`DriverGone`.
        """
        try:
            message = self._inbox.get(timeout=limit_s) if limit_s > 0 else self._inbox.get_nowait()
        except queue.Empty:
            if time.monotonic() - self._heard > self.silence_limit_s:
                raise DriverGone from None
            return None
        if message is None:
            raise DriverGone
        return message

    def _end_abandoned(self) -> None:
        """Ends the process where the driver is silent and the main thread has not ended it."""
        while (silent_s := time.monotonic() - self._heard) < self.silence_limit_s + END_LIMIT_S:
            time.sleep(min(self.silence_limit_s + END_LIMIT_S - silent_s, WATCH_S))
        os._exit(1)

    def _read_messages(self) -> None:
        try:
            for line in self._source:
                self._heard = time.monotonic()
                message = json.loads(line)
                if message["kind"] == "clock":
                    # Answered here, so that no queue adds to the time.
                    clocks = {"clock_ns": time.perf_counter_ns(), "time_ns": time.time_ns()}
                    self.send("clock", number=message["number"], **clocks)
                elif message["kind"] != "alive":
                    self._inbox.put(message)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # The connection is broken, a line was cut off, or a line is no message.
        finally:
            self._inbox.put(None)


def _serve_load(conversation: _Conversation) -> None:
    conversation.send("hello", protocol=PROTOCOL, version=__version__)
    plan: Message = {}
    while True:
        message = conversation.receive(WAIT_LIMIT_S)
        match message and message["kind"]:
            case None:
                continue
            case "prepare" if message:
                plan = {**message["plan"], "share": message["share"]}
                reason = find_obstacle(plan["target"])
                if reason is None:
                    conversation.send("ready")
                else:
                    conversation.send("refused", reason=reason)
            case "start" if message:
                conversation.silence_limit_s = SILENCE_LIMIT_S
                plan["share"]["start_ns"] = message["at_ns"]
                _run_engine(conversation, plan)
                return
            case _:
                return


def find_obstacle(target: Message) -> str | None:
    """Why this machine can't call the target; ``None`` where it can."""
    if target["kind"] == "stdio":
        program = target["command"][0]
        return (
            None if shutil.which(program, path=target.get("env", {}).get("PATH")) else f"there is no program {program}"
        )
    address = urlsplit(target["url"])
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), REACH_LIMIT_S).close()
    except (OSError, ValueError) as error:
        return f"{address.hostname}:{port} can't be reached: {getattr(error, 'strerror', None) or error}"
    return None


def _run_engine(conversation: _Conversation, plan: Message) -> None:
    try:
        engine = _core.Load(json.dumps(plan))
    except ValueError as error:
        conversation.send("refused", reason=str(error))
        return
    stop_by: float | None = None
    try:
        while not (has_ended := engine.wait(LOOK_S)):
            _report_seconds(conversation, engine)
            message = conversation.receive(0)
            if message is not None and message["kind"] == "stop" and stop_by is None:
                engine.stop()
                stop_by = time.monotonic() + plan["drain_s"] + END_LIMIT_S
            if stop_by is not None and time.monotonic() > stop_by:
                break
    finally:
        engine.stop()
    _report_seconds(conversation, engine)
    if has_ended:
        outcome = json.loads(engine.result())
        # The seconds are sent already.
        conversation.send("outcome", outcome={**outcome, "seconds": []})
        # The driver closes the connection when it has read everything.
        while True:
            conversation.receive(WATCH_S)


def _report_seconds(conversation: _Conversation, engine: _core.Load) -> None:
    for delta in json.loads(engine.deltas()):
        conversation.send("delta", delta=delta)


@contextmanager
def _own_stdout() -> Iterator[IO[bytes]]:
    """Yields the stdout that the driver reads. Everything else that is printed goes to stderr."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with own:
        yield own
