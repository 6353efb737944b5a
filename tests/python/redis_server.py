"""A real redis-server for a test, that writes down what it acknowledged: it can be killed and started again."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from mcpace.lab.redis import Connection, RedisProblem, find_program

START_LIMIT_S = 20.0


class RedisServer:
    """Use as a context manager."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.url = f"redis://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, with what it had."""
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "daemonize": "no",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen(
            [find_program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with Connection(self.port) as connection:
                    # An error for as long as it reads its file.
                    connection.one("PING")
                    info = connection.one("INFO", "server")
                    # Who answers must be ours.
                    assert isinstance(info, bytes)
                    assert f"process_id:{self._process.pid}\r\n".encode() in info
                    return
            except RedisProblem:
                time.sleep(0.01)
        raise AssertionError("redis-server does not start")

    def kill(self) -> None:
        """Ends it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_LIMIT_S)
            self._process = None

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
