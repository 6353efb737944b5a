"""Searches eight times: with a client for each search, or with one client."""

import asyncio
import os
import sys

from fastmcp import Client

QUERIES = ("bucket", "queue", "table", "stack", "role", "policy", "topic", "lambda")


async def search(client: Client, query: str) -> None:
    await client.list_tools()
    await client.call_tool("forecast", {"city": query})


async def main() -> None:
    if sys.argv[1] == "one-client":
        async with Client(os.environ["MCP_URL"]) as client:
            for query in QUERIES:
                await client.call_tool("forecast", {"city": query})
        return
    for query in QUERIES:
        async with Client(os.environ["MCP_URL"]) as client:
            await search(client, query)


asyncio.run(main())
