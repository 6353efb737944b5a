"""HTTP and Redis clients that the tools of the shop can use, each behind the two or three calls that the tools make.

Each client is written as its documentation shows, with kept connections for all users. A client is made at the first
call, on the loop that serves. Imports are inside the functions, because each library is installed in a folder of its
own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

CONNECTIONS = 1_000

Answers = list[Any]


class Http:
    """A client of the product API. ``get`` returns the text, ``post`` the parsed answer."""

    async def get(self, path: str, query: dict[str, Any]) -> str:
        raise NotImplementedError

    async def post(self, path: str, body: Any) -> Any:
        raise NotImplementedError


class Httpx(Http):
    def __init__(self, base: str, httpx: Any, transport: Any = None) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        self._client = httpx.AsyncClient(base_url=base, limits=limits, trust_env=False, transport=transport)

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._client.get(path, params=query)
        reply.raise_for_status()
        return reply.text

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._client.post(path, json=body)
        reply.raise_for_status()
        return reply.json()


def open_httpx(base: str) -> Http:
    import httpx

    return Httpx(base, httpx)


def open_httpx2(base: str) -> Http:
    import httpx2

    return Httpx(base, httpx2)


def open_httpx_aiohttp(base: str) -> Http:
    import httpx
    from httpx_aiohttp import AiohttpTransport

    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return Httpx(base, httpx, AiohttpTransport(limits=limits))


def open_httpx_pyqwest(base: str) -> Http:
    import httpx
    from pyqwest import HTTPTransport
    from pyqwest.httpx import AsyncPyqwestTransport

    transport = HTTPTransport(follow_redirects=False, pool_max_idle_per_host=CONNECTIONS, enable_otel=False)
    return Httpx(base, httpx, AsyncPyqwestTransport(transport))


class Aiohttp(Http):
    def __init__(self, base: str) -> None:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        self._session = aiohttp.ClientSession(base, connector=connector, raise_for_status=True)

    async def get(self, path: str, query: dict[str, Any]) -> str:
        async with self._session.get(path, params=query) as reply:
            return str(await reply.text())

    async def post(self, path: str, body: Any) -> Any:
        async with self._session.post(path, json=body) as reply:
            return await reply.json()


class Pyreqwest(Http):
    def __init__(self, base: str) -> None:
        from pyreqwest.client import ClientBuilder

        builder = ClientBuilder().base_url(base).error_for_status(True).no_proxy().max_connections(CONNECTIONS)
        self._client = builder.pool_max_idle_per_host(CONNECTIONS).build()

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._client.get(path).query(query).build().send()
        return str(await reply.text())

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._client.post(path).body_json(body).build().send()
        return await reply.json()


class Pyqwest(Http):
    def __init__(self, base: str) -> None:
        from pyqwest import Client, HTTPTransport

        self._base = base
        self._client = Client(HTTPTransport(pool_max_idle_per_host=CONNECTIONS, enable_otel=False))

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._client.get(f"{self._base}{path}?{urlencode(query)}")
        check_status(reply.status)
        return str(reply.text())

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._client.post(f"{self._base}{path}", content=json.dumps(body).encode())
        check_status(reply.status)
        return reply.json()


class Niquests(Http):
    def __init__(self, base: str) -> None:
        import niquests

        self._base = base
        self._session = niquests.AsyncSession(pool_connections=10, pool_maxsize=CONNECTIONS, base_url=base)
        self._session.trust_env = False

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._session.get(path, params=query)
        reply.raise_for_status()
        return str(reply.text)

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._session.post(path, json=body)
        reply.raise_for_status()
        return reply.json()


class Aiosonic(Http):
    def __init__(self, base: str) -> None:
        import aiosonic
        from aiosonic.connectors import TCPConnector
        from aiosonic.pools import PoolConfig

        connector = TCPConnector({":default": PoolConfig(size=CONNECTIONS, max_conn_requests=None)})
        self._base = base
        self._client = aiosonic.HTTPClient(connector)

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._client.get(self._base + path, params={name: str(value) for name, value in query.items()})
        check_status(reply.status_code)
        return str(await reply.text())

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._client.post(self._base + path, json=body)
        check_status(reply.status_code)
        return await reply.json()


class CurlCffi(Http):
    def __init__(self, base: str) -> None:
        from curl_cffi.requests import AsyncSession

        self._session = AsyncSession(base_url=base, max_clients=CONNECTIONS, trust_env=False)

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._session.get(path, params=query)
        reply.raise_for_status()
        return str(reply.text)

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._session.post(path, json=body)
        reply.raise_for_status()
        return reply.json()


class Wreq(Http):
    def __init__(self, base: str) -> None:
        import wreq

        self._base = base
        self._client = wreq.Client(pool_max_idle_per_host=CONNECTIONS, no_proxy=True)

    async def get(self, path: str, query: dict[str, Any]) -> str:
        reply = await self._client.get(self._base + path, query=query)
        reply.raise_for_status()
        return str(await reply.text())

    async def post(self, path: str, body: Any) -> Any:
        reply = await self._client.post(self._base + path, json=body)
        reply.raise_for_status()
        return await reply.json()


def check_status(status: int) -> None:
    if status != 200:
        raise RuntimeError(f"the product API answers {status}")


class Urllib3:
    """Blocks its thread, as :class:`SyncRedis` does."""

    def __init__(self, base: str) -> None:
        import urllib3

        self._base = base
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS)

    def get(self, path: str, query: dict[str, Any]) -> str:
        reply = self._pool.request("GET", self._base + path, fields=query)
        check_status(reply.status)
        return str(reply.data.decode())

    def post(self, path: str, body: Any) -> Any:
        reply = self._pool.request("POST", self._base + path, json=body)
        check_status(reply.status)
        return reply.json()


class Redis:
    """A client of Redis. Each method sends one pipeline."""

    async def cart(self, user_id: int) -> Answers:
        raise NotImplementedError

    async def pay(self, user_id: int, total: int) -> Answers:
        raise NotImplementedError


class RedisPy(Redis):
    def __init__(self, client: Any) -> None:
        self._client = client

    async def cart(self, user_id: int) -> Answers:
        async with self._client.pipeline(transaction=False) as pipe:
            stack_cart(pipe, user_id)
            return list(await pipe.execute())

    async def pay(self, user_id: int, total: int) -> Answers:
        async with self._client.pipeline(transaction=False) as pipe:
            stack_payment(pipe, user_id, total)
            return list(await pipe.execute())


async def open_redis(url: str) -> Redis:
    from redis.asyncio import Redis as Client

    return RedisPy(Client.from_url(url, decode_responses=True))


async def open_valkey(url: str) -> Redis:
    from valkey.asyncio import Valkey

    return RedisPy(Valkey.from_url(url, decode_responses=True))


class Coredis(Redis):
    def __init__(self, client: Any) -> None:
        self._client = client

    async def cart(self, user_id: int) -> Answers:
        async with self._client.pipeline(transaction=False) as pipe:
            user, cart = pipe.hgetall(f"user:{user_id}"), pipe.lrange(f"cart:{user_id}", 0, -1)
        return [await user, await cart]

    async def pay(self, user_id: int, total: int) -> Answers:
        async with self._client.pipeline(transaction=False) as pipe:
            number = pipe.incr(f"orders:{user_id}")
            pipe.hincrby(f"user:{user_id}", "spent", total)
            pipe.lpush(f"history:{user_id}", [total])
            pipe.ltrim(f"history:{user_id}", 0, 9)
        return [await number]


async def open_coredis(url: str) -> Redis:
    import coredis

    client = coredis.Redis.from_url(url, decode_responses=True, max_connections=CONNECTIONS)
    return Coredis(await client.__aenter__())


class Glide(Redis):
    def __init__(self, client: Any) -> None:
        self._client = client

    async def cart(self, user_id: int) -> Answers:
        from glide import Batch

        user, cart = await self._client.exec(
            Batch(is_atomic=False).hgetall(f"user:{user_id}").lrange(f"cart:{user_id}", 0, -1), raise_on_error=True
        )
        return [{key.decode(): value.decode() for key, value in user.items()}, [entry.decode() for entry in cart]]

    async def pay(self, user_id: int, total: int) -> Answers:
        from glide import Batch

        batch = Batch(is_atomic=False).incr(f"orders:{user_id}").hincrby(f"user:{user_id}", "spent", total)
        batch = batch.lpush(f"history:{user_id}", [str(total)]).ltrim(f"history:{user_id}", 0, 9)
        return list(await self._client.exec(batch, raise_on_error=True))


async def open_glide(url: str) -> Redis:
    from glide import GlideClient, GlideClientConfiguration, NodeAddress

    host, _, rest = url.removeprefix("redis://").partition(":")
    port, _, database = rest.partition("/")
    settings = GlideClientConfiguration([NodeAddress(host, int(port))], database_id=int(database))
    return Glide(await GlideClient.create(settings))


class SyncRedis:
    def __init__(self, url: str) -> None:
        from redis import Redis as Client

        self._client = Client.from_url(url, decode_responses=True)

    def cart(self, user_id: int) -> Answers:
        with self._client.pipeline(transaction=False) as pipe:
            stack_cart(pipe, user_id)
            return list(pipe.execute())

    def pay(self, user_id: int, total: int) -> Answers:
        with self._client.pipeline(transaction=False) as pipe:
            stack_payment(pipe, user_id, total)
            return list(pipe.execute())


def stack_cart(pipe: Any, user_id: int) -> None:
    pipe.hgetall(f"user:{user_id}")
    pipe.lrange(f"cart:{user_id}", 0, -1)


def stack_payment(pipe: Any, user_id: int, total: int) -> None:
    pipe.incr(f"orders:{user_id}")
    pipe.hincrby(f"user:{user_id}", "spent", total)
    pipe.lpush(f"history:{user_id}", total)
    pipe.ltrim(f"history:{user_id}", 0, 9)


@dataclass(frozen=True)
class Library:
    """A client with the packages that it is measured with."""

    requirements: tuple[str, ...]
    open: Callable[[str], Any]
    blocks: bool = False
    """Whether its calls block their thread. Tools are then plain functions, which run in mcpace's threads."""


HTTP = {
    "httpx": Library(("httpx==0.28.1",), open_httpx),
    "httpx2": Library(("httpx2==2.16.2",), open_httpx2),
    "httpx on aiohttp": Library(("httpx==0.28.1", "httpx-aiohttp==0.2.0", "aiohttp==3.14.5"), open_httpx_aiohttp),
    "httpx on pyqwest": Library(("httpx==0.28.1", "pyqwest==0.12.0", "h2"), open_httpx_pyqwest),
    "aiohttp": Library(("aiohttp==3.14.5",), Aiohttp),
    "pyreqwest": Library(("pyreqwest==0.15.1",), Pyreqwest),
    "pyqwest": Library(("pyqwest==0.12.0",), Pyqwest),
    "niquests": Library(("niquests==3.21.2",), Niquests),
    "aiosonic": Library(("aiosonic==1.3.3",), Aiosonic),
    "curl_cffi": Library(("curl-cffi==0.17.0",), CurlCffi),
    "wreq": Library(("wreq==0.13.0",), Wreq),
    "urllib3 in threads": Library(("urllib3==2.8.0",), Urllib3, blocks=True),
}

REDIS: dict[str, Library] = {
    "redis-py": Library(("redis==8.1.0",), open_redis),
    "redis-py, hiredis": Library(("redis==8.1.0", "hiredis==3.5.0"), open_redis),
    "valkey-py, libvalkey": Library(("valkey==6.2.0", "libvalkey==4.2.1"), open_valkey),
    "coredis": Library(("coredis==6.9.0",), open_coredis),
    "valkey-glide": Library(("valkey-glide==2.5.3",), open_glide),
    "redis-py, hiredis in threads": Library(("redis==8.1.0", "hiredis==3.5.0"), SyncRedis, blocks=True),
}
