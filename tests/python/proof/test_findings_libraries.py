"""Answers of `mcpace measure --inside` about requests that tools make by the libraries that people use most.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mcpace.lab.paths import find_uv
from support.commands import LIMIT_S
from support.databases import postgresql
from support.finding_scenes import patient
from support.inside_measurement import contexts_by_code, measure_inside
from support.redis_server import RedisServer
from support.weather_api import weather_api

PACKAGES = (
    "mcp==1.30.0",
    "aiohttp==3.14.5",
    "django==5.2.9",
    "psycopg[binary]==3.3.9",
    "redis==8.1.0",
    "requests==2.34.2",
    "sqlalchemy==2.1.9",
)

SERVER = """
import asyncio, subprocess, sys
from mcp.server.fastmcp import FastMCP

way, base, redis_port, postgres_port = sys.argv[1:]
mcp = FastMCP("orders")
KINDS = ("geo", "now", "hourly", "daily", "alerts")
CUSTOMERS = range(1, 31)
place = f"127.0.0.1:{postgres_port}/invoices"
library = way.partition("-")[0]
if library == "requests":
    import requests
    session = requests.Session()
elif library == "aiohttp":
    import aiohttp
elif library == "redis":
    import redis
    client = redis.Redis(port=int(redis_port))
    keys = [f"key:{number}" for number in range(400)]
    client.mset({key: "value" for key in keys})
elif library == "psycopg":
    import psycopg
    connection = psycopg.connect(f"postgresql://invoices@{place}", autocommit=True)
elif library == "sqlalchemy":
    import sqlalchemy
    from sqlalchemy import orm
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://invoices@{place}")
    class Base(orm.DeclarativeBase):
        pass
    class Customer(Base):
        __tablename__ = "customers"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        name: orm.Mapped[str]
    class Invoice(Base):
        __tablename__ = "invoices"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        customer_id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.ForeignKey("customers.id"))
        customer: orm.Mapped[Customer] = orm.relationship()
elif library == "django":
    import django
    from django.conf import settings
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "invoices", "USER": "invoices", "HOST": "127.0.0.1"}
    settings.configure(DATABASES={"default": {**database, "PORT": postgres_port, "CONN_MAX_AGE": None}})
    django.setup()
    from django.db import models
    class Customer(models.Model):
        name = models.TextField()
        class Meta:
            app_label = "shop"
            db_table = "customers"
    class Invoice(models.Model):
        customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
        class Meta:
            app_label = "shop"
            db_table = "invoices"

def fetch(kind):
    return session.get(f"{base}/{kind}").text

async def fetch_by_aiohttp(session, kind):
    async with session.get(f"{base}/{kind}") as response:
        return await response.text()

def names():
    if way == "sqlalchemy-lazy":
        with orm.Session(engine) as own:
            return [invoice.customer.name for invoice in own.scalars(sqlalchemy.select(Invoice))]
    if way == "sqlalchemy-joined":
        with orm.Session(engine) as own:
            query = sqlalchemy.select(Invoice).options(orm.joinedload(Invoice.customer))
            return [invoice.customer.name for invoice in own.scalars(query)]
    if way == "django-lazy":
        return [invoice.customer.name for invoice in Invoice.objects.all()]
    if way == "django-joined":
        return [invoice.customer.name for invoice in Invoice.objects.select_related("customer")]
    if way == "psycopg-each":
        statement = "SELECT count(*) FROM invoices, pg_sleep(0.001) WHERE customer_id = %s"
        return [connection.execute(statement, (one,)).fetchone()[0] for one in CUSTOMERS]
    statement = "SELECT count(*) FROM invoices, pg_sleep(0.001) WHERE customer_id = ANY(%s) GROUP BY customer_id"
    return [count for count, in connection.execute(statement, (list(CUSTOMERS),)).fetchall()]

@mcp.tool()
async def summary() -> str:
    result = None
    if way == "requests-serial":
        result = [await asyncio.to_thread(fetch, kind) for kind in KINDS]
    elif way == "requests-together":
        result = await asyncio.gather(*(asyncio.to_thread(fetch, kind) for kind in KINDS))
    elif library == "aiohttp":
        global session
        if "session" not in globals():
            session = aiohttp.ClientSession()
        if way == "aiohttp-serial":
            result = [await fetch_by_aiohttp(session, kind) for kind in KINDS]
        else:
            result = await asyncio.gather(*(fetch_by_aiohttp(session, kind) for kind in KINDS))
    elif way == "redis-each":
        result = await asyncio.to_thread(lambda: [client.get(key) for key in keys])
    elif way == "redis-together":
        result = await asyncio.to_thread(client.mget, keys)
    elif way == "subprocess-blocks":
        result = subprocess.run(["sleep", "0.1"], check=True)
    elif way == "subprocess-awaited":
        result = await (await asyncio.create_subprocess_exec("sleep", "0.1")).wait()
    else:
        result = await asyncio.to_thread(names)
    return str(result)[:100]

mcp.run()
"""

TABLES = """
CREATE TABLE customers (id integer PRIMARY KEY, name text);
CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer REFERENCES customers);
INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(1, 60) n;
INSERT INTO invoices SELECT n, n FROM generate_series(1, 60) n;
"""


@dataclass(frozen=True)
class Proof:
    """A way of the tool that has a cause, and the way that is the advised change."""

    code: str
    way: str
    change: str
    gains: bool = True
    """Whether the change makes the call itself quicker."""

    def __str__(self) -> str:
        return self.way


PROOFS = (
    Proof("serial-dependencies", "requests-serial", "requests-together"),
    Proof("serial-dependencies", "aiohttp-serial", "aiohttp-together"),
    Proof("repeated-dependency-call", "redis-each", "redis-together"),
    Proof("repeated-dependency-call", "psycopg-each", "psycopg-together"),
    Proof("repeated-dependency-call", "sqlalchemy-lazy", "sqlalchemy-joined"),
    Proof("repeated-dependency-call", "django-lazy", "django-joined"),
    Proof("blocking-call-in-event-loop", "subprocess-blocks", "subprocess-awaited", gains=False),
)


@dataclass(frozen=True)
class Orders:
    """The server's program with an interpreter and the dependencies of its tool."""

    folder: Path
    dependencies: tuple[str, ...]

    def measured(self, way: str) -> dict[str, Any]:
        """The case of the tool's calls."""
        program = self.folder / "orders.py"
        program.write_text(SERVER)
        command = [str(self.folder / "venv/bin/python"), str(program), way, *self.dependencies]
        return measure_inside(command, "summary", self.folder)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orders]:
    folder = tmp_path_factory.mktemp("libraries")
    uv, python = str(find_uv()), str(folder / "venv/bin/python")
    subprocess.run([uv, "venv", "--quiet", "--python", "3.11", str(folder / "venv")], check=True, timeout=LIMIT_S)
    install = [uv, "pip", "install", "--quiet", "--python", python, *PACKAGES]
    subprocess.run(install, check=True, timeout=10 * LIMIT_S)
    (folder / "redis").mkdir()
    with weather_api() as api, postgresql() as database, RedisServer(folder / "redis") as redis:
        place = f"postgresql://invoices@{database['DATABASE_HOST']}:{database['DATABASE_PORT']}/invoices"
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(TABLES)
        yield Orders(folder, (api, str(redis.port), database["DATABASE_PORT"]))


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("proof", PROOFS, ids=str)
@patient
def test_the_cause_is_named_and_the_advised_change_gains_the_estimate(proof: Proof, orders: Orders) -> None:
    before, after = orders.measured(proof.way), orders.measured(proof.change)
    found = contexts_by_code(before)
    assert proof.code in found, found
    assert proof.code not in contexts_by_code(after), contexts_by_code(after)
    inside = before["inside"]
    assert inside["rest_s"] <= 0.2 * inside["server_s"], inside
    if proof.gains:
        gained = inside["server_s"] - after["inside"]["server_s"]
        estimate = found[proof.code]["gain_ns"] / 1e9
        assert 0.5 * gained <= estimate <= 1.5 * gained, (inside, after["inside"], found)
