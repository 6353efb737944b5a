"""Opens sessions over HTTP one after another, with one call in each. Arguments: their number; `delete` to end them."""

import os
import sys
import time

import httpx

HEADERS = {"accept": "application/json, text/event-stream"}
BEGIN = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


def post(client: httpx.Client, session: str, message: dict) -> httpx.Response:
    headers = {**HEADERS, **({"mcp-session-id": session} if session else {})}
    return client.post(os.environ["MCP_URL"], headers=headers, json={"jsonrpc": "2.0", **message}).raise_for_status()


with httpx.Client(timeout=20) as client:
    for _ in range(int(sys.argv[1])):
        begun = post(client, "", {"id": 1, "method": "initialize", "params": BEGIN})
        session = begun.headers.get("mcp-session-id", "")
        post(client, session, {"method": "notifications/initialized"})
        call = {"name": "forecast", "arguments": {"city": "Oslo"}}
        post(client, session, {"id": 2, "method": "tools/call", "params": call})
        if session and "delete" in sys.argv:
            client.delete(os.environ["MCP_URL"], headers={"mcp-session-id": session})
        time.sleep(0.02)
