"""Pairs of libraries with one use: each prepares what both need, and yields one use of either."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

Use = Callable[[], Awaitable[object] | object]
Pair = AsyncIterator[tuple[Use, Use]]


@dataclass(frozen=True)
class Case:
    """A library, a quicker one, and the use of both that is measured."""

    library: str
    """Its name as a distribution; ``Python`` in ``packages`` stands for the standard library."""
    alternative: str
    use: str
    modules: tuple[str, ...]
    """Modules of the library, and of libraries that only it uses."""
    prepare: Callable[[], AbstractAsyncContextManager[tuple[Use, Use]]]
    seen_in: tuple[str, ...] = ()
    """Modules that stacks show only in this use."""
    through: tuple[str, ...] = ()
    """Libraries that may stand between the server's own code and this library."""
    packages: tuple[str, str] | None = None
    """Distributions of both, where their names differ from those above; empty for the standard library."""


REPLY = json.dumps({"items": [{"id": n, "name": f"item {n}", "price": n / 7} for n in range(40)]}).encode()


def serve_replies(ready: Connection) -> None:
    """A stand-in for an HTTP API and for Redis: it answers each request with the reply that the first byte asks for."""

    class Peer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport
            self.unread = b""

        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.WriteTransport)
            self.unread += data
            if self.unread[:1] == b"*":
                commands = self.unread.count(b"MGET")
                self.transport.write(VALUES * commands or b"+OK\r\n" * self.unread.count(b"*"))
                self.unread = b""
            while b"\r\n\r\n" in self.unread:
                _, _, self.unread = self.unread.partition(b"\r\n\r\n")
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(REPLY)}\r\n\r\n"
                self.transport.write(head.encode() + REPLY)

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Peer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


VALUES = b"*200\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(f"value {n}"), f"value {n}".encode()) for n in range(200))


@asynccontextmanager
async def peer() -> AsyncIterator[int]:
    """The port of the stand-in, in a process of its own."""
    context = get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=serve_replies, args=(other,), daemon=True)
    process.start()
    try:
        yield own.recv()
    finally:
        process.kill()
        process.join()


@asynccontextmanager
async def http_async() -> Pair:
    import aiohttp
    import httpx

    async with peer() as port, httpx.AsyncClient() as client, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/items"

        async def by_httpx() -> bytes:
            return (await client.get(url)).content

        async def by_aiohttp() -> bytes:
            async with session.get(url) as response:
                return await response.read()

        assert await by_httpx() == await by_aiohttp() == REPLY
        yield by_httpx, by_aiohttp


@asynccontextmanager
async def http_sync() -> Pair:
    import httpx
    import urllib3

    async with peer() as port:
        url = f"http://127.0.0.1:{port}/items"
        with httpx.Client() as client, urllib3.PoolManager() as pool:
            assert client.get(url).content == pool.request("GET", url).data == REPLY
            yield lambda: client.get(url).content, lambda: pool.request("GET", url).data


@asynccontextmanager
async def http_requests() -> Pair:
    import requests
    import urllib3

    async with peer() as port:
        url = f"http://127.0.0.1:{port}/items"
        with requests.Session() as session, urllib3.PoolManager() as pool:
            assert session.get(url).content == pool.request("GET", url).data == REPLY
            yield lambda: session.get(url).content, lambda: pool.request("GET", url).data


@asynccontextmanager
async def redis_parsers() -> Pair:
    import redis
    from redis._parsers import _HiredisParser, _RESP2Parser

    keys = [f"key:{number}" for number in range(200)]
    async with peer() as port:

        def client(parser: type[Any]) -> redis.Redis:
            pool = redis.ConnectionPool(
                host="127.0.0.1", port=port, parser_class=parser, protocol=2, lib_name=None, lib_version=None
            )
            return redis.Redis(connection_pool=pool)

        slow, quick = client(_RESP2Parser), client(_HiredisParser)
        assert slow.mget(keys) == quick.mget(keys)
        yield lambda: slow.mget(keys), lambda: quick.mget(keys)


RECORDS = [
    {"id": n, "name": f"name {n}", "tags": ["a", "b"], "position": {"x": n / 3, "y": n * 1.5}, "open": n % 2 == 0}
    for n in range(1_000)
]


@asynccontextmanager
async def json_read() -> Pair:
    import orjson

    text = json.dumps(RECORDS)
    yield lambda: json.loads(text), lambda: orjson.loads(text)


@asynccontextmanager
async def json_write() -> Pair:
    import orjson

    yield lambda: json.dumps(RECORDS), lambda: orjson.dumps(RECORDS).decode()


SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id", "name", "position"],
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "name": {"type": "string", "minLength": 1},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "position": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
            "open": {"type": "boolean"},
        },
    },
}


@asynccontextmanager
async def schemas() -> Pair:
    import jsonschema
    import jsonschema_rs

    checker, quick = jsonschema.Draft202012Validator(SCHEMA), jsonschema_rs.Draft202012Validator(SCHEMA)
    records = RECORDS[:100]
    yield lambda: checker.validate(records), lambda: quick.validate(records)


@asynccontextmanager
async def yaml_loaders() -> Pair:
    import yaml

    text = yaml.safe_dump(RECORDS[:100])
    yield lambda: yaml.load(text, yaml.SafeLoader), lambda: yaml.load(text, yaml.CSafeLoader)


def page() -> str:
    rows = (
        f'<tr class="row"><td><a href="/items/{n}">item {n}</a></td><td>{n * 3} &euro;</td></tr>' for n in range(300)
    )
    return f"<html><head><title>Items</title></head><body><table>{''.join(rows)}</table></body></html>"


@asynccontextmanager
async def html_parsers() -> Pair:
    from bs4 import BeautifulSoup
    from selectolax.lexbor import LexborHTMLParser

    text = page()

    def by_soup() -> list[str]:
        return [str(link["href"]) for link in BeautifulSoup(text, "html.parser").select("tr.row a")]

    def by_selectolax() -> list[str]:
        return [str(link.attributes["href"]) for link in LexborHTMLParser(text).css("tr.row a")]

    assert by_soup() == by_selectolax()
    yield by_soup, by_selectolax


@asynccontextmanager
async def xml_trees() -> Pair:
    from xml.dom import minidom
    from xml.etree import ElementTree

    items = "".join(f'<item id="{n}"><name>item {n}</name></item>' for n in range(500))
    text = f"<items>{items}</items>"

    def by_minidom() -> list[str]:
        return [item.getAttribute("id") for item in minidom.parseString(text).getElementsByTagName("item")]

    def by_tree() -> list[str]:
        return [item.attrib["id"] for item in ElementTree.fromstring(text).iter("item")]

    assert by_minidom() == by_tree()
    yield by_minidom, by_tree


@asynccontextmanager
async def dates() -> Pair:
    from datetime import datetime

    from dateutil.parser import parse

    texts = [f"2026-11-{day:02}T10:{day:02}:05+00:00" for day in range(1, 29)]
    assert [parse(text) for text in texts] == [datetime.fromisoformat(text) for text in texts]
    yield lambda: [parse(text) for text in texts], lambda: [datetime.fromisoformat(text) for text in texts]


@asynccontextmanager
async def similar_texts() -> Pair:
    from difflib import SequenceMatcher

    from rapidfuzz.distance import Indel

    names = [
        f"{first} {last}" for first in ("anna", "bernd", "clara") for last in ("meyer", "maier", "schmidt", "smith")
    ]

    def by_difflib() -> list[float]:
        return [SequenceMatcher(None, "anna mayer", name).ratio() for name in names]

    def by_rapidfuzz() -> list[float]:
        return [Indel.normalized_similarity("anna mayer", name) for name in names]

    yield by_difflib, by_rapidfuzz


@asynccontextmanager
async def spreadsheets() -> Pair:
    import openpyxl
    from python_calamine import CalamineWorkbook

    book = openpyxl.Workbook()
    for row in csv.reader(f"{n},name {n},{n / 7}" for n in range(1_000)):
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    data = file.getvalue()

    def by_openpyxl() -> list[Any]:
        return [list(row) for row in openpyxl.load_workbook(io.BytesIO(data)).active.iter_rows(values_only=True)]

    def by_calamine() -> list[Any]:
        return CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0).to_python()

    assert by_openpyxl() == by_calamine()
    yield by_openpyxl, by_calamine


@asynccontextmanager
async def pdf_texts() -> Pair:
    import pypdf
    import pypdfium2
    from fpdf import FPDF

    document = FPDF()
    document.set_font("Helvetica")
    for number in range(5):
        document.add_page()
        for line in range(40):
            document.cell(text=f"Page {number}, line {line}: the quick brown fox jumps", new_x="LMARGIN", new_y="NEXT")
    data = bytes(document.output())

    def by_pypdf() -> str:
        return "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)

    def by_pdfium() -> str:
        with pypdfium2.PdfDocument(data) as pages:
            return "".join(page.get_textpage().get_text_range() for page in pages)

    assert "Page 3, line 7" in by_pypdf() and "Page 3, line 7" in by_pdfium()
    yield by_pypdf, by_pdfium


CLIENTS = ("httpx", "requests", "aiohttp", "urllib3")

CASES = (
    Case(
        "httpx",
        "aiohttp",
        "asynchronous GET of 2 kB over a kept connection",
        ("httpx", "httpcore"),
        http_async,
        seen_in=("httpcore/_async",),
    ),
    Case(
        "httpx",
        "urllib3",
        "GET of 2 kB over a kept connection",
        ("httpx", "httpcore"),
        http_sync,
        seen_in=("httpcore/_sync",),
    ),
    Case("requests", "urllib3", "GET of 2 kB over a kept connection", ("requests",), http_requests),
    Case(
        "redis",
        "redis with hiredis",
        "MGET of 200 values",
        ("redis",),
        redis_parsers,
        seen_in=("redis/_parsers/resp2", "redis/_parsers/resp3", "redis/_parsers/socket"),
        packages=("redis", "hiredis"),
    ),
    Case(
        "json",
        "orjson",
        "reading 1,000 records",
        ("json",),
        json_read,
        seen_in=("json/decoder",),
        through=CLIENTS,
        packages=("", "orjson"),
    ),
    Case(
        "json",
        "orjson",
        "writing 1,000 records",
        ("json",),
        json_write,
        seen_in=("json/encoder",),
        through=CLIENTS,
        packages=("", "orjson"),
    ),
    Case(
        "jsonschema",
        "jsonschema-rs",
        "checking 100 records with a validator that is built once",
        ("jsonschema", "referencing", "jsonschema_specifications"),
        schemas,
    ),
    Case(
        "PyYAML",
        "yaml.CSafeLoader",
        "loading 100 records by SafeLoader",
        ("yaml",),
        yaml_loaders,
        seen_in=("yaml/scanner", "yaml/reader"),
        packages=("PyYAML", "PyYAML"),
    ),
    Case(
        "beautifulsoup4",
        "selectolax",
        "finding the links of a page of 300 rows, by html.parser",
        ("bs4", "soupsieve"),
        html_parsers,
        seen_in=("html/parser",),
    ),
    Case(
        "xml.dom.minidom",
        "xml.etree.ElementTree",
        "reading 500 elements",
        ("xml/dom",),
        xml_trees,
        packages=("", ""),
    ),
    Case(
        "python-dateutil",
        "datetime.fromisoformat",
        "reading dates in ISO 8601",
        ("dateutil/parser",),
        dates,
        packages=("python-dateutil", ""),
    ),
    Case("difflib", "rapidfuzz", "comparing short texts", ("difflib",), similar_texts, packages=("", "rapidfuzz")),
    Case(
        "openpyxl",
        "python-calamine",
        "reading a sheet of 1,000 rows",
        ("openpyxl",),
        spreadsheets,
        seen_in=("openpyxl/reader", "openpyxl/worksheet/_reader"),
    ),
    Case("pypdf", "pypdfium2", "reading the text of five pages", ("pypdf",), pdf_texts),
)
