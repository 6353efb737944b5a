"""The echo tool on the official Python SDK, served by uvicorn.

Usage: server.py PORT json|sse stateless|stateful MORE_TOOLS, or server.py stdio.
"""

import sys
from pathlib import Path

from mcp.server import MCPServer

# The structured result is the same for each server.
sys.path.append(str(Path(__file__).resolve().parents[1] / "mcpace-python"))
import catalogue

mcp = MCPServer("echo", log_level="WARNING")


def echo(text: str) -> str:
    return text


# Text only, without a structured copy, as in all servers of the comparison.
mcp.add_tool(echo, description="Says the text again", structured_output=False)
mcp.add_tool(catalogue.catalogue, name="catalogue", description="10 KB of products")


def main() -> None:
    if sys.argv[1] == "stdio":
        mcp.run()
        return
    # Imported only for HTTP, because the start over stdio is measured, too.
    import uvicorn

    port, mode, sessions, more_tools = sys.argv[1:]
    for number in range(int(more_tools)):
        mcp.add_tool(echo, name=f"echo_{number}", description="Says the text again", structured_output=False)
    app = mcp.streamable_http_app(stateless_http=sessions == "stateless", json_response=mode == "json")
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
