"""Median seconds of a call of `echo`, one after another, through a client.

Usage: client.py MODULE URL CALLS, where MODULE has the official `Client` or mcpace's, which is used alike."""

import asyncio
import importlib
import statistics
import sys
import time


async def main() -> None:
    client_of, url, calls = importlib.import_module(sys.argv[1]).Client, sys.argv[2], int(sys.argv[3])
    taken = []
    async with client_of(url) as client:
        for _ in range(calls):
            begun = time.perf_counter()
            result = await client.call_tool("echo", {"text": "hi"})
            taken.append(time.perf_counter() - begun)
            assert result.content[0].text == "hi"
    print(statistics.median(taken))


asyncio.run(main())
