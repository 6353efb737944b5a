"""The example project served in its three ways, on SQLite and on PostgreSQL; and with a Redis, by several processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpace import StdioServerParameters, SyncClient
from support.databases import postgresql
from support.http_client import LEGACY, HttpClient
from support.redis_server import RedisServer
from support.serve_process import Served, hold_process

EXAMPLE = Path(__file__).parents[3] / "examples" / "django-invoices"
LIMIT_S = 180

# One host for each of Django's interfaces: the standard library's WSGI server, and uvicorn.
WSGI = """
import sys, wsgiref.simple_server
from project.wsgi import application
served = wsgiref.simple_server.make_server("127.0.0.1", 0, application)
print(f"mcpace 0 serving wsgi at http://127.0.0.1:{served.server_port}/mcp", file=sys.stderr, flush=True)
served.serve_forever()
"""
ASGI = """
import socket, sys, uvicorn
from project.asgi import application
listening = socket.create_server(("127.0.0.1", 0))
print(f"mcpace 0 serving asgi at http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off")).run(sockets=[listening])
"""


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return prepared({"SQLITE_FILE": str(tmp_path_factory.mktemp("sqlite") / "db.sqlite3")})


@pytest.fixture(scope="module")
def postgres() -> Iterator[dict[str, str]]:
    with postgresql() as place:
        yield prepared(place)


def prepared(place: dict[str, str]) -> dict[str, str]:
    """A database with the example's tables and a superuser."""
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("DATABASE_HOST", "DJANGO_SETTINGS_MODULE")},
        **place,
        "PYTHONWARNINGS": "ignore",
        "CONN_MAX_AGE": "600",
    }
    manage(environment, "migrate", "-v0")
    root = {"DJANGO_SUPERUSER_PASSWORD": "x"}
    manage(environment | root, "createsuperuser", "--noinput", "--username", "root", "--email", "root@shop.example")
    return environment


def manage(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=EXAMPLE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.getfixturevalue(request.param)
    return found


@contextlib.contextmanager
def running(environment: dict[str, str], *words: str) -> Iterator[Served]:
    """A process of the project, by default ``manage.py``."""
    command = list(words) if words[0] == "-c" else ["manage.py", *words]
    process = subprocess.Popen(
        [sys.executable, *command], cwd=EXAMPLE, env=environment, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with hold_process(process) as served:
        served.ready()
        yield served


def begun(served: Served) -> HttpClient:
    """A client, with a session where the server supports sessions."""
    client = HttpClient(served.port)
    client.initialize()
    return client


WAYS = {
    "manage.py mcpace": ("mcpace", "--port", "0"),
    "manage.py mcpace --workers 2": ("mcpace", "--port", "0", "--workers", "2"),
    "wsgi": ("-c", WSGI),
    "asgi": ("-c", ASGI),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_invoice_is_written_and_read(way: str, database: dict[str, str]) -> None:
    with running(database, *WAYS[way]) as served:
        client = begun(served)
        number = f"{way} {os.urandom(4).hex()}"[-20:]
        customer = f"Ada of {number}"
        assert json.loads(client.text("double", n=21)) == {"doubled": 42}
        client.text("customers.add", name=customer)
        lines = [{"what": "advice", "amount": "12.50"}, {"what": "more", "amount": "0.50"}]
        written = json.loads(client.text("invoices.create", number=number, customer=customer, lines=lines))
        assert written["total"] == "13.00"
        moved = json.loads(client.text("invoices.set_status", number=number, status="sent"))
        assert moved["status"] == "sent"
        page = json.loads(client.text("invoices.list", customer=customer))
        assert [item["number"] for item in page["items"]] == [number]
        _, _, body = client.exchange("resources/read", {"uri": f"invoices://{number.replace(' ', '%20')}"})
        assert json.loads(json.loads(body)["result"]["contents"][0]["text"])["number"] == number
        # A second invoice with the number, and one that fails half way, leave no rows.
        again = client.text("invoices.create", number=number, customer=customer, lines=lines)
        assert json.loads(again)["error"]["type"] == "service_error"
        too_much = [{"what": "x", "amount": "1"}, {"what": "y" * 500, "amount": "1"}]
        assert "error" in json.loads(client.text("invoices.create", number="n2", customer=customer, lines=too_much))


def test_it_serves_stdio(sqlite: dict[str, str]) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["manage.py", "mcpace", "--stdio"], cwd=str(EXAMPLE), env=sqlite
    )
    with SyncClient(command) as client:
        assert client.call_tool("double", {"n": 2}).structured_content == {"doubled": 4}


def test_stopped_it_ends_with_its_calls(sqlite: dict[str, str]) -> None:
    with running(sqlite, "mcpace", "--port", "0") as served:
        begun(served).text("double", n=1)
        served.process.send_signal(signal.SIGINT)
        assert served.ended() == 130
    with running(sqlite, "mcpace", "--port", "0", "--workers", "2") as served:
        begun(served).text("double", n=1)
        served.process.send_signal(signal.SIGTERM)
        assert served.ended() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mcpace", "no.such:server"), "there is no module 'no'"),
        (("mcpace", "invoices.mcp:nothing"), "invoices.mcp has no 'nothing'"),
        (("mcpace", "--workers", "2", "--reload"), "leave --workers out"),
        (("mcpace", "--path", "mcp"), "doesn't begin with a slash"),
    ],
)
def test_what_it_cannot_serve_is_one_sentence(words: tuple[str, ...], said: str, sqlite: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=EXAMPLE, env=sqlite, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_redis_that_is_not_there_is_one_sentence(sqlite: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "mcpace", "--port", "0"],
        cwd=EXAMPLE, env=sqlite | {"REDIS_URL": "redis://127.0.0.1:1"}, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 3
    assert "Redis at 127.0.0.1:1 can't be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("--host", "0.0.0.0"), ("--host", "0.0.0.0", "--workers", "2")])
def test_whoever_lets_everybody_in_serves_this_machine_only(words: tuple[str, ...], sqlite: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "mcpace", "--port", "0", *words],
        cwd=EXAMPLE, env=sqlite, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "0.0.0.0 can't be listened on: AllowAny lets every caller in" in done.stderr
    assert "Traceback" not in done.stderr


# Several processes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["manage.py mcpace", "asgi"])
def test_processes_share_sessions_and_limits_by_djangos_cache(
    way: str, sqlite: dict[str, str], redis: RedisServer
) -> None:
    """Two processes that share only the Redis of the project's cache, as on two machines."""
    shared = sqlite | {"REDIS_URL": redis.url}
    with running(shared, *WAYS[way]) as one, running(shared, *WAYS[way]) as other:
        client = begun(one)
        elsewhere = HttpClient(other.port, revision=LEGACY, session=client.session)
        assert client.session is not None
        assert json.loads(elsewhere.text("double", n=4)) == {"doubled": 8}
        client.text("customers.add", name=f"shared by {way}")
        numbers = iter(range(100))

        def written(at: HttpClient) -> bool:
            number = f"{way[:4]}-{next(numbers)}"
            lines = [{"what": "advice", "amount": "1"}]
            arguments = {"number": number, "customer": f"shared by {way}", "lines": lines}
            _, _, body = at.exchange("tools/call", {"name": "invoices.create", "arguments": arguments})
            return "result" in json.loads(body)

        # 60 a minute in total, over both processes.
        assert [written(at) for _ in range(30) for at in (client, elsewhere)] == [True] * 60
        assert not written(client)
        assert not written(elsewhere)


@pytest.mark.parametrize("on_down", ["refuse", "memory"])
def test_a_redis_that_is_away_is_told_once(on_down: str, sqlite: dict[str, str], redis: RedisServer) -> None:
    with running(sqlite | {"REDIS_URL": redis.url, "ON_STORE_DOWN": on_down}, *WAYS["manage.py mcpace"]) as served:
        client = begun(served)
        redis.kill()
        # A known session is served until the process has noticed the loss. There is one line for the sessions, and one
        # for the limits once they are checked.
        served.lines.until(r"Redis at .* can't be reached .*session")
        statuses = {client.exchange("tools/call", {"name": "double", "arguments": {"n": 1}})[0] for _ in range(5)}
        assert statuses == ({200} if on_down == "memory" else {503})
        redis.start()
        served.lines.until("Redis at .* is back")
        assert len([line for line in served.lines.said if "can't be reached" in line and "session" in line]) == 1


# Connections ---------------------------------------------------------------------------------------------------------


def test_a_broken_connection_is_replaced(postgres: dict[str, str]) -> None:
    """Kept connections are health-checked (``CONN_HEALTH_CHECKS``) before their next use, as by Django's requests."""
    with running(postgres, "mcpace", "--port", "0") as served:
        client = begun(served)
        for _ in range(3):
            assert "items" in json.loads(client.text("invoices.list"))
            assert connections(postgres) >= 1, "CONN_MAX_AGE keeps it"
            ended(postgres)
        assert "items" in json.loads(client.text("invoices.list"))


def test_connections_are_closed_after_each_call_where_they_are_not_kept(postgres: dict[str, str]) -> None:
    with running(postgres | {"CONN_MAX_AGE": "0"}, "mcpace", "--port", "0") as served:
        clients = [begun(served) for _ in range(8)]
        calls = [threading.Thread(target=lambda one=one: one.text("invoices.list")) for one in clients]
        for call in calls:
            call.start()
        for call in calls:
            call.join(LIMIT_S)
        assert "items" in json.loads(clients[0].text("invoices.list"))
        assert gone(postgres)


def test_atomic_requests_take_all_back(postgres: dict[str, str]) -> None:
    with running(postgres | {"ATOMIC_REQUESTS": "1"}, "mcpace", "--port", "0") as served:
        client = begun(served)
        assert json.loads(client.text("customers.add", name="once"))["name"] == "once"
        again = json.loads(client.text("customers.add", name="once"))
        assert again["error"]["detail"] == {"name": ["customer with this name already exists."]}
        assert json.loads(client.text("double", n=2)) == {"doubled": 4}


def connections(environment: dict[str, str]) -> int:
    """Number of clients of a database, apart from this test."""
    with asking(environment) as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'invoices' AND pid <> pg_backend_pid()")
        return int(cursor.fetchone()[0])


def gone(environment: dict[str, str]) -> bool:
    """Whether the last client disappears in time. A backend ends shortly after its client has closed."""
    until = time.monotonic() + 20
    while connections(environment):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def ended(environment: dict[str, str]) -> None:
    """Ends all clients of a database, and waits for their end."""
    with asking(environment) as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = 'invoices' AND pid <> pg_backend_pid()"
        )


@contextlib.contextmanager
def asking(environment: dict[str, str]) -> Iterator[Any]:
    import psycopg

    host, port = environment["DATABASE_HOST"], environment["DATABASE_PORT"]
    with psycopg.connect(host=host, port=int(port), user="invoices", dbname="invoices", autocommit=True) as connection:
        yield connection.cursor()
