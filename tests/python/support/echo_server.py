"""A server of the official Python SDK with two tools, for testing client programs."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from mcpace.lab.adapters.toml_file import load_all
from mcpace.lab.environments import environment
from support import ports

LIMIT_S = 30.0

SERVER = """
import sys
from mcp.server.fastmcp import FastMCP
server = FastMCP("shop", host="127.0.0.1", port=int(sys.argv[1]), log_level="ERROR")
@server.tool()
def echo(text: str) -> str:
    return text
@server.tool()
def fail() -> str:
    raise ValueError("on purpose")
server.run("streamable-http" if sys.argv[1] != "0" else "stdio")
"""


def interpreter() -> str:
    """Returns an interpreter that has the SDK."""
    return environment.ensure_environment(load_all()["python"], "1.30.0").places["python"]


def over_stdio() -> list[str]:
    """The command that starts the server over stdio."""
    return [interpreter(), "-c", SERVER, "0"]


@contextmanager
def over_http() -> Iterator[str]:
    """Runs the server on a free port and yields its URL."""
    port = ports.free()
    script = SERVER.replace('server.run("', 'print("up", flush=True)\nserver.run("', 1)
    with subprocess.Popen([interpreter(), "-c", script, str(port)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        try:
            wait_for_port(port, server)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def wait_for_port(port: int, server: subprocess.Popen[str]) -> None:
    """Waits until a program listens on the port, or the server has died."""
    for _ in range(3_000):
        assert server.poll() is None, "the server died"
        with socket.socket() as probe:
            probe.settimeout(LIMIT_S)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            server.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the server never listened")
