"""A server of the official Python SDK whose tool runs a query of DuckDB on the event loop, or in a thread."""

import os
import sys

import anyio.to_thread
import duckdb
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("data", host="127.0.0.1", port=int(os.environ["PORT"]), stateless_http=True)
LONG = "SELECT sum(sqrt(a.range) * sin(a.range)) FROM range(30000000) a"


def run_query() -> str:
    with duckdb.connect(config={"threads": 1}) as connection:
        return str(connection.sql(LONG).fetchall())


async def query() -> str:
    return await anyio.to_thread.run_sync(run_query)


mcp.add_tool(run_query if sys.argv[1] == "inline" else query, name="query")
mcp.run("streamable-http")
