"""A real redis-server for tests, which can be killed and restarted without losing acknowledged writes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from mcpace.lab.servers.redis import Connection, RedisProblem, find_program
from support import ports

START_LIMIT_S = 20.0
ATTEMPTS = 5
"""Another process may take a port between our finding it free and Redis's taking it."""


class RedisServer:
    """A running redis-server. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts or restarts the server with its data and on its port."""
        if self.port:
            assert self._starts(), "redis-server does not start again"
            return
        for _ in range(ATTEMPTS):
            self.port = ports.free()
            if self._starts():
                return
        raise AssertionError("redis-server does not start")

    def _starts(self) -> bool:
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
                    connection.send_command("PING")
                    info = connection.send_command("INFO", "server")
                    # Another Redis may have taken the port: compare the process ids.
                    assert isinstance(info, bytes)
                    if f"process_id:{self._process.pid}\r\n".encode() in info:
                        return True
                    break
            except RedisProblem:
                time.sleep(0.01)
        self.kill()
        return False

    def kill(self) -> None:
        """Kills the server like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_LIMIT_S)
            self._process = None

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
