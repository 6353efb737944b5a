"""The echo tool on FastMCP, served by uvicorn. Usage: server.py PORT json|sse, or `stdio`."""

import sys

from fastmcp import FastMCP
from fastmcp.tools import Tool


def main() -> None:
    server = FastMCP("echo")
    # Text only, without a structured copy, as in all servers of the comparison.
    server.add_tool(Tool.from_function(echo, description="Says the text again", output_schema=None))
    if sys.argv[1] == "stdio":
        server.run(show_banner=False)
        return
    # Imported only for HTTP, because the start over stdio is measured, too.
    import uvicorn

    port, mode = int(sys.argv[1]), sys.argv[2]
    app = server.http_app(stateless_http=True, json_response=mode == "json")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def echo(text: str) -> str:
    return text


main()
