"""Number of requests to an issuer about tokens, with an identity provider of 200 ms, many connections, many tokens.

Connections are paired. Both connections of a pair use the pair's tokens for the first time at the same moment, so that
two calls wait for each first request to the issuer. Then all connections use all tokens at random. All of this is
repeated after the lifetime of the cached answers.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from processes import running

from support.layering import MCPACE, SERVERS

REVISION = "2026-07-28"
RESOURCE = "https://mcp.example/mcp"


@dataclass(frozen=True)
class Size:
    """Size of the measurement."""

    tokens: int = 1_000
    connections: int = 50
    further: int = 200
    """Number of later calls of each connection, whose tokens are known."""
    answer_s: float = 0.2
    lifetime_s: float = 30.0
    lifetimes: int = 2


@dataclass
class Issuer:
    """An issuer that accepts every token after a delay, and counts the requests."""

    size: Size
    asked: Counter[str] = field(default_factory=Counter)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        try:
            while True:
                _, body = await _message(reader)
                [token] = parse_qs(body.decode())["token"]
                self.asked[token] += 1
                await asyncio.sleep(self.size.answer_s)
                told = {"active": True, "client_id": "bench", "sub": token, "scope": "read", "aud": RESOURCE}
                reply = json.dumps({**told, "exp": int(time.time()) + 3_600}).encode()
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(reply)}\r\n\r\n"
                writer.write(head.encode() + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # the server has closed the connection, or the measurement has ended
        finally:
            writer.close()


def measure(size: Size) -> dict[str, Any]:
    """The row of the table. Raises ``RuntimeError`` where a call failed or exceeded the time of the measurement."""
    return asyncio.run(_measured(size))


def target(row: dict[str, Any]) -> dict[str, Any]:
    """The target, and whether it was met."""
    what = (
        f"requests to the issuer, for each token and lifetime of a cached answer ({row['tokens']:,} tokens, "
        f"{row['connections']} connections, the issuer answers after {row['answer_s'] * 1e3:g} ms)"
    )
    actual = row["requests_per_token"]
    return {"what": what, "at_most": 1, "unit": "requests", "actual": actual, "met": row["most_for_a_token"] <= 1}


async def _measured(size: Size) -> dict[str, Any]:
    issuer = Issuer(size)
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/introspect"
        environment = {"INTROSPECTION_URL": url, "LIFETIME_S": str(size.lifetime_s)}
        program = Path(MCPACE.interpreter()).with_name("mcpace")
        place = f"{SERVERS / 'on_mcpace_introspecting.py'}:mcp"
        command = [program, "serve", place, "--port", "0", "--stateless"]
        # Reading its output blocks the loop, but no request is open at that time.
        with running(command, environment, SERVERS, r"serving .*:(\d+)/") as port:
            first, known, most = [], [], 0
            for lifetime in range(size.lifetimes):
                begun = time.monotonic()
                before = Counter(issuer.asked)
                asked_first, used_again = await _lifetime(size, port, seed=lifetime)
                if time.monotonic() - begun > size.lifetime_s:
                    raise RuntimeError(f"a lifetime of {size.lifetime_s:g} s was over before its calls were")
                first += asked_first
                known += used_again
                most = max(most, *(issuer.asked - before).values())
                if lifetime + 1 < size.lifetimes:
                    await asyncio.sleep(size.lifetime_s)
    low, median, high = statistics.quantiles(known, n=4, method="inclusive")
    asked = issuer.asked.total()
    return {
        "name": "mcpace-introspection",
        "layer": "socket",
        "median_s": median,
        "low_s": low,
        "high_s": high,
        "first_median_s": statistics.median(first),
        "answer_s": size.answer_s,
        "tokens": size.tokens,
        "connections": size.connections,
        "lifetimes": size.lifetimes,
        "calls": len(first) + len(known),
        "requests": asked,
        "requests_per_token": asked / size.tokens / size.lifetimes,
        "most_for_a_token": most,
    }


async def _lifetime(size: Size, port: int, seed: int) -> tuple[list[float], list[float]]:
    """Times of first calls, and of calls with known tokens, in seconds."""
    tokens = [f"token-{number}" for number in range(size.tokens)]
    pairs = size.connections // 2
    share = -(-size.tokens // pairs)
    lines = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(2 * pairs)))
    chosen = random.Random(seed)
    own = [tokens[share * (number // 2) : share * (number // 2 + 1)] for number in range(len(lines))]
    any_of_all = [chosen.choices(tokens, k=size.further) for _ in lines]
    try:
        firsts = await asyncio.gather(*(_calls(*line, part) for line, part in zip(lines, own, strict=True)))
        again = await asyncio.gather(*(_calls(*line, part) for line, part in zip(lines, any_of_all, strict=True)))
    finally:
        for _, writer in lines:
            writer.close()
    return list(chain(*firsts)), list(chain(*again))


async def _calls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: list[str]) -> list[float]:
    """Makes calls one after another; returns their times in seconds."""
    took = []
    for token in tokens:
        begun = time.perf_counter()
        writer.write(_request(token))
        status, body = await _message(reader)
        took.append(time.perf_counter() - begun)
        if status != 200 or json.loads(body).get("result", {}).get("structuredContent") != {"result": 42}:
            raise RuntimeError(f"a call was answered {status}: {body[:300]!r}")
    return took


def _request(token: str) -> bytes:
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": REVISION, f"{prefix}/clientCapabilities": {}}
    meta[f"{prefix}/clientInfo"] = {"name": "bench", "version": "1"}
    params = {"name": "double", "arguments": {"n": 21}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = (
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\nmcp-protocol-version: {REVISION}\r\n"
        f"mcp-method: tools/call\r\nmcp-name: double\r\nauthorization: Bearer {token}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


async def _message(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Reads a message with a length: its body, and the status of a reply."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split(" ")[1]) if first.startswith("HTTP/") else 0
    return status, await reader.readexactly(int(fields.get("content-length", 0)))
