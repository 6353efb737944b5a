"""The echo tool on robyn, with its own support of MCP. Usage: server.py PORT --disable-openapi --log-level WARN."""

import sys

# Robyn reads its own options from the command line when it is imported.
port = int(sys.argv.pop(1))

from robyn import Robyn  # noqa: E402

app = Robyn(__file__)


@app.mcp.tool(description="Says the text again")
def echo(text: str) -> str:
    return text


app.start(host="127.0.0.1", port=port)
