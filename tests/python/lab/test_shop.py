"""The shop of the shop workload: mcpace's product API and a private Redis, with equal contents for every server."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace.lab.errors import LabError
from mcpace.lab.servers import redis, shop
from mcpace.lab.servers.redis import Connection, Redis, RedisProblem
from support import ports


@pytest.fixture(scope="module")
def running():
    with shop.Shop() as made:
        yield made


def test_each_server_has_users_and_carts_of_its_own(running: shop.Shop) -> None:
    first, second = running.open(), running.open()
    assert first.environment()["SHOP_REDIS"] != second.environment()["SHOP_REDIS"]
    with first.connect() as one, second.connect() as two:
        one.send_pipeline([["DEL", "cart:7"], ["HSET", "user:7", "tier", "none"]])
        assert one.send_command("LRANGE", "cart:7", 0, -1) == []
        items = two.send_command("LRANGE", "cart:7", 0, -1)
        assert items == [f"{product}:{quantity}".encode() for product, quantity in shop.cart_items(7)]
        assert len(items) == 7
        assert two.send_command("HMGET", "user:7", "name", "tier") == [b"Radia 7", b"silver"]
        assert two.send_command("EXISTS", f"user:{shop.USERS}") == 1
        assert two.send_command("EXISTS", f"user:{shop.NOBODY}") == 0


def test_a_server_is_asked_for_quick_libraries_in_its_environment(running: shop.Shop) -> None:
    assert "SHOP_QUICK" not in running.open().environment()
    assert running.open(quick=True).environment()["SHOP_QUICK"] == "1"


def test_filling_again_takes_away_what_a_load_left(running: shop.Shop) -> None:
    account = running.open()
    with account.connect() as connection:
        connection.send_command("INCR", "orders:1")
        account.fill_database()
        assert connection.send_command("GET", "orders:1") is None
        assert connection.send_command("HGET", "user:1", "tier") == b"silver"


def test_every_search_of_the_load_finds_something_and_carts_can_be_paid(running: shop.Shop) -> None:
    for query in shop.SEARCHES:
        found = json.loads(running.search(query, 3))
        assert found["total"] > 0, query
        assert all(query.lower() in product["name"].lower() for product in found["products"])
    product = json.loads(running.search("lamp", 1))["products"][0]
    assert running.price([{"product_id": product["id"], "quantity": 3}]) == 3 * product["price_cents"]
    assert running.price([{"product_id": shop.PRODUCTS, "quantity": 1}]) > 0
    with pytest.raises(LabError, match="doesn't answer"):
        running.price([{"product_id": shop.PRODUCTS + 1, "quantity": 1}])
    assert all(
        1 <= product <= shop.PRODUCTS for user in range(1, shop.USERS + 1) for product, _ in shop.cart_items(user)
    )


def test_redis_answers_in_pipelines_and_its_errors_are_told(running: shop.Shop) -> None:
    with running.redis.connect(9) as connection:
        answers = connection.send_pipeline(["ECHO", f"é{number}"] for number in range(2_500))
        assert answers[-1] == "é2499".encode()
        assert connection.send_command("GET", "nothing") is None
        with pytest.raises(RedisProblem, match="Redis answers with an error: ERR unknown command"):
            connection.send_command("NONSENSE")
        assert connection.send_command("PING") == b"PONG"


def test_a_redis_that_has_gone_is_told() -> None:
    with Redis() as made:
        connection = made.connect()
        os.kill(made.pid, signal.SIGKILL)
        with pytest.raises(RedisProblem, match="Redis has gone"):
            connection.send_command("PING")
        connection.close()


def test_redis_leaves_nothing_behind() -> None:
    with Redis() as made:
        folder, port = made._folder, made.port
        assert folder.is_dir()
    assert not folder.exists()
    with pytest.raises(RedisProblem, match="can't be reached"):
        Connection(port)


def test_redis_ends_with_whoever_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    program = "from mcpace.lab.servers.redis import Redis; made = Redis(); print(made.pid, flush=True); input()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as owner:
        assert owner.stdout is not None
        redis_pid = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    ended, _, _ = select.select([redis_pid], [], [], 20)
    os.close(redis_pid)
    assert ended


def test_without_redis_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "PROGRAM", "redis-server-that-is-not-there")
    with pytest.raises(RedisProblem, match=r"not installed: apt-get install redis-server$"):
        shop.Shop()


def test_another_redis_on_the_port_is_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of another Redis must not be flushed: if the port is taken, the next one is tried."""
    with Redis() as other:
        free = ports.free()
        tried = iter([other.port, free])
        monkeypatch.setattr(redis, "_free_port", lambda: next(tried))
        with Redis() as ours:
            assert ours.port == free
