"""The process contract of ../README.md, for client programs in Python.

Commands are JSON lines on stdin; each is answered by one line on stdout. This file contains only the contract; the
driver of each program drives its SDK.

The program runs inside the environment of the release under test, so this file has Python 3.10 syntax and imports only
the standard library.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

UNSUPPORTED_EXIT = 127
DEFAULT_LIMIT_S = 60.0
MESSAGE_LIMIT = 2_000


def run(sdk: str, load: Callable[[], Any], lacking: str) -> NoReturn:
    """Serves commands until the end. `load` creates the driver. `lacking` describes the missing feature of a release
    whose driver can't be imported."""
    answers = claim_stdout()
    last_log = mute_logging()
    try:
        driver = load()
    except ImportError as error:
        print(f"{lacking}: {error}", file=sys.stderr)
        code = UNSUPPORTED_EXIT
    else:
        code = asyncio.run(serve(sdk, driver, answers, last_log))
    sys.stderr.flush()
    # The stdin thread may still be blocked in `read`, and the interpreter's own shutdown would wait for it.
    os._exit(code)


async def serve(sdk: str, driver: Any, answers: Callable[[dict[str, Any]], None], last_log: LastLog) -> int:
    """Reads commands until `close`, the end of stdin, or SIGTERM."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    this_task = asyncio.current_task()
    assert this_task is not None  # asyncio.run made one
    loop.add_signal_handler(signal.SIGTERM, this_task.cancel)
    threading.Thread(target=read_lines, args=(loop, lines), daemon=True).start()
    answers({"ready": True, "sdk": sdk, "version": driver.version, "pid": os.getpid()})
    try:
        while line := await lines.get():
            command = parse(line)
            if command.get("cmd") == "close":
                break
            last_log.clear()
            answers(await answer(driver, command, last_log))
    except asyncio.CancelledError:
        pass
    await driver.abandon()
    return 0


async def answer(driver: Any, command: dict[str, Any], last_log: LastLog) -> dict[str, Any]:
    """Runs one command. Every failure becomes an answer, so the next command can still run."""
    name = str(command.get("cmd"))
    operation = driver.operations.get(name)
    if operation is None:
        return failure(name, "protocol", command.get("problem") or f"unknown command {name!r}")
    limit_s = float(command.get("timeout_s") or DEFAULT_LIMIT_S)
    outcome = await operation(command, limit_s)
    answered: dict[str, Any] = {
        "op": name,
        "ok": outcome.error is None,
        "start_ns": outcome.start_ns,
        "end_ns": outcome.end_ns,
    }
    if outcome.error is None:
        answered["result"] = outcome.result
    else:
        message = outcome.error.message
        # The 1.x transport logs a failed request and leaves the caller waiting, so the reason is in the log.
        if outcome.error.kind == "timeout" and last_log.text:
            message += f"; the SDK logged: {last_log.text}"
        answered["error"] = {"kind": outcome.error.kind, "message": message[:MESSAGE_LIMIT]}
    return answered


def failure(name: str, kind: str, message: str) -> dict[str, Any]:
    error = {"kind": kind, "message": message[:MESSAGE_LIMIT]}
    return {"op": name, "ok": False, "start_ns": None, "end_ns": None, "error": error}


def parse(line: bytes) -> dict[str, Any]:
    try:
        command = json.loads(line)
    except ValueError as error:
        return {"cmd": None, "problem": f"this line is no JSON: {error}"}
    return command if isinstance(command, dict) else {"cmd": None, "problem": "a command is a JSON object"}


def read_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes]) -> None:
    """Passes the lines of stdin to the loop; an empty line stands for the end of stdin.

    A thread that is blocked in `read` doesn't affect the timed operations.
    """
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")
    except (RuntimeError, ValueError):
        pass  # the loop or stdin was closed, because the program is ending


def claim_stdout() -> Callable[[dict[str, Any]], None]:
    """Reserves the real stdout for answers; output of libraries goes to stderr instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def write(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    return write


class LastLog(logging.Handler):
    """Keeps the last warning or error, without formatting it while an operation is timed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.record: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.record = record

    def clear(self) -> None:
        self.record = None

    @property
    def text(self) -> str:
        if self.record is None:
            return ""
        cause = self.record.exc_info[1] if self.record.exc_info else None
        try:
            message = self.record.getMessage()
        except Exception:  # a bad format string in a library's log call
            message = str(self.record.msg)
        return f"{message}: {cause}" if cause is not None else message


def mute_logging() -> LastLog:
    handler = LastLog()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    return handler
