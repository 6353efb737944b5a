"""Answers of `mcpace measure --inside` about connections and waits of threads: real libraries, PostgreSQL, Redis, TLS.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

import http.server
import json
import shlex
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.paths import find_uv
from support.commands import LIMIT_S, run
from support.databases import postgresql
from support.finding_scenes import patient
from support.redis_server import RedisServer

PACKAGES = (
    "mcp==1.30.0",
    "requests==2.34.2",
    "redis==8.1.0",
    "psycopg[binary]==3.3.9",
    "sqlalchemy==2.1.9",
)
ANSWER_S = 0.02
"""Time in which the HTTP server answers."""

SERVER = """
import asyncio, multiprocessing, sys, threading, time
from concurrent.futures import ProcessPoolExecutor

way, folder, https, redis_port, postgres_port = sys.argv[1:]
WORKERS = 4

def conninfo():
    return f"host=127.0.0.1 port={postgres_port} user=invoices dbname=invoices"

if __name__ == "__main__":
    if way.startswith("requests"):
        import requests
        session = requests.Session()
        session.verify = f"{folder}/cert.pem"
    elif way.startswith("redis"):
        import redis
        client = redis.Redis(port=int(redis_port))
        client.set("key", "value")
    elif way.startswith("psycopg"):
        import psycopg
        connection = psycopg.connect(conninfo(), autocommit=True)
    elif way.startswith("sqlalchemy"):
        import sqlalchemy
        size = 2 if way == "sqlalchemy-small" else WORKERS
        url = f"postgresql+psycopg://invoices@127.0.0.1:{postgres_port}/invoices"
        engine = sqlalchemy.create_engine(url, pool_size=size, max_overflow=0)
    elif way == "computes-in-processes":
        processes = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    lock = threading.Lock()

def ask():
    if way == "requests-each":
        for kind in ("now", "daily"):
            requests.get(f"{https}/{kind}", verify=session.verify)
    elif way == "requests-session":
        for kind in ("now", "daily"):
            session.get(f"{https}/{kind}", verify=session.verify)
    elif way == "redis-each":
        for key in ("a", "b", "c"):
            redis.Redis(port=int(redis_port)).get(key)
    elif way == "redis-shared":
        for key in ("a", "b", "c"):
            client.get(key)
    elif way == "psycopg-each":
        with psycopg.connect(conninfo(), autocommit=True) as own:
            own.execute("SELECT pg_sleep(0.02)")
    elif way == "psycopg-shared":
        connection.execute("SELECT pg_sleep(0.02)")
    elif way.startswith("sqlalchemy"):
        with engine.connect() as own:
            own.execute(sqlalchemy.text("SELECT pg_sleep(0.04)"))
    elif way == "locks":
        with lock:
            time.sleep(0.04)
    elif way == "locks-less":
        time.sleep(0.04)
    elif way == "computes-in-threads":
        compute()

def compute():
    return sum(n * n for n in range(600_000))

if __name__ == "__main__":
    from mcp.server.fastmcp import FastMCP

    mcp = FastMCP("orders")

    @mcp.tool()
    async def lookup() -> str:
        if way == "computes-in-processes":
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(loop.run_in_executor(processes, compute) for _ in range(2)))
        elif way == "computes-in-threads":
            await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(2)))
        elif way.startswith(("sqlalchemy", "locks")):
            await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(WORKERS)))
        else:
            await asyncio.to_thread(ask)
        return way

    mcp.run()
"""


class Weather(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second one would wait for an acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        time.sleep(ANSWER_S)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


class Services:
    """The dependencies of the tool, and an interpreter with their clients."""

    def __init__(self, folder: Path, https: str, redis_port: int, postgres_port: str) -> None:
        self.folder = folder
        self._arguments = [str(folder), https, str(redis_port), postgres_port]

    def measured(self, way: str) -> dict[str, Any]:
        """The case of the tool's calls."""
        program = self.folder / "orders.py"
        program.write_text(SERVER)
        command = shlex.join([str(self.folder / "venv/bin/python"), str(program), way, *self._arguments])
        done = run("measure", f"stdio:{command}", "--tool", "lookup", "--inside", "--json", folder=self.folder)
        assert done.code == 0, done.stderr
        [case] = [case for case in json.loads(done.stdout)["cases"] if case["operation"] == "call"]
        assert case["inside"]["missing"] == [], case["inside"]
        return dict(case)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("connections")
    python = folder / "venv/bin/python"
    uv = str(find_uv())
    subprocess.run([uv, "venv", "--quiet", "--python", "3.11", str(folder / "venv")], check=True, timeout=LIMIT_S)
    install = [uv, "pip", "install", "--quiet", "--python", str(python), *PACKAGES]
    subprocess.run(install, check=True, timeout=10 * LIMIT_S)
    key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    names = ["-keyout", "key.pem", "-out", "cert.pem", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*key, *names], cwd=folder, check=True, capture_output=True, timeout=LIMIT_S)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "redis").mkdir()
    with RedisServer(folder / "redis") as redis, postgresql() as database:
        yield Services(folder, f"https://127.0.0.1:{server.server_port}", redis.port, database["DATABASE_PORT"])
    server.shutdown()
    server.server_close()


def contexts(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding["context"] for finding in case["findings"]}


CONNECTION = "dependency-connection-per-call"


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("way", "connections"),
    [
        ("requests-each", 2),
        ("requests-session", None),
        ("redis-each", 3),
        ("redis-shared", None),
        ("psycopg-each", 1),
        ("psycopg-shared", None),
    ],
)
@patient
def test_a_connection_in_each_call_is_named_and_a_connection_that_is_kept_is_not(
    way: str, connections: int | None, services: Services
) -> None:
    found = contexts(services.measured(way))
    if connections is None:
        assert CONNECTION not in found, found
        return
    assert found[CONNECTION]["connections"] == connections, found
    assert found[CONNECTION]["handshake"] == (way == "requests-each")
    assert found[CONNECTION]["dependency_closes"] is False
    assert found[CONNECTION]["file"].endswith("orders.py")
    assert found[CONNECTION]["function"] == "ask"


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("sqlalchemy-small", "pool-wait"),
        ("sqlalchemy-large", None),
        ("locks", "lock-wait"),
        ("locks-less", None),
        ("computes-in-threads", "lock-wait"),
        ("computes-in-processes", None),
    ],
)
@patient
def test_threads_that_wait_for_each_other_are_named_and_their_control_is_not(
    way: str, code: str | None, services: Services
) -> None:
    found = contexts(services.measured(way))
    waits = {"pool-wait", "lock-wait"} & set(found)
    assert waits == ({code} if code else set()), found
    if code:
        assert found[code]["file"].endswith("orders.py")
    if code == "lock-wait":
        assert found[code]["interpreter"] == (way == "computes-in-threads")


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("requests-each", "requests-session", CONNECTION),
        ("psycopg-each", "psycopg-shared", CONNECTION),
        ("sqlalchemy-small", "sqlalchemy-large", "pool-wait"),
        ("locks", "locks-less", "lock-wait"),
        ("computes-in-threads", "computes-in-processes", "lock-wait"),
    ],
)
@patient
def test_the_advised_change_gains_what_was_estimated(before: str, after: str, code: str, services: Services) -> None:
    cases = [services.measured(way) for way in (before, after)]
    estimate = contexts(cases[0])[code]["gain_ns"] / 1e9
    took = [case["inside"]["server_s"] for case in cases]
    gain = took[0] - took[1]
    assert 0.5 * gain <= estimate <= 1.5 * gain, (took, estimate)
