"""The echo tool on the official Python SDK, served by uvicorn. Usage: server.py PORT json|sse."""

import sys

import uvicorn
from mcp.server import MCPServer


def main() -> None:
    port, mode = int(sys.argv[1]), sys.argv[2]
    server = MCPServer("echo", log_level="WARNING")
    # Text alone, as every server here answers: no structured copy of it.
    server.add_tool(echo, description="Says the text again", structured_output=False)
    app = server.streamable_http_app(stateless_http=True, json_response=mode == "json")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def echo(text: str) -> str:
    return text


main()
