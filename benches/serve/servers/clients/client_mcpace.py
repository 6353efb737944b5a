"""Median seconds of a call of `echo`, one after another, through mcpace's client. Usage: URL CALLS."""

import asyncio
import statistics
import sys
import time

from mcpace import Client


async def main() -> None:
    url, calls = sys.argv[1], int(sys.argv[2])
    taken = []
    async with Client(url) as client:
        for _ in range(calls):
            begun = time.perf_counter()
            result = await client.call_tool("echo", {"text": "hi"})
            taken.append(time.perf_counter() - begun)
            assert result.content[0].text == "hi"
    print(statistics.median(taken))


asyncio.run(main())
