"""A server behind a route that collects the body of each reply (`collect`) or passes its parts on (`stream`)."""

import asyncio
import os
import sys

import uvicorn
from fastmcp import Context, FastMCP
from starlette.responses import Response

mcp = FastMCP("reports")


@mcp.tool
async def write_report(context: Context) -> str:
    for part in range(6):
        await context.report_progress(part, 6)
        await asyncio.sleep(0.15)
    return "written"


inner = mcp.http_app()


async def route(scope, receive, send) -> None:
    if scope["type"] != "http" or scope["method"] != "POST" or sys.argv[1] == "stream":
        await inner(scope, receive, send)
        return
    status, headers, body = 200, [], b""

    async def collect(message) -> None:
        nonlocal status, headers, body
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
        else:
            body += message.get("body", b"")

    await inner(scope, receive, collect)
    kept = {name.decode(): value.decode() for name, value in headers if name != b"content-length"}
    await Response(body, status, kept)(scope, receive, send)


uvicorn.run(route, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
