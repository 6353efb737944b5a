"""Serves one tool over stdio by a loop of its own, as a bridge does: stdout is block-buffered, or line-buffered."""

import json
import sys

from mcp.types import LATEST_PROTOCOL_VERSION

if sys.argv[1] == "line-buffered":
    sys.stdout.reconfigure(line_buffering=True)

SERVER = {
    "protocolVersion": LATEST_PROTOCOL_VERSION,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "iq", "version": "1"},
}
PROOF = "proof (prove)\ngoal (1 subgoal): " + "x \\<longrightarrow> x " * 40

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = SERVER if message["method"] == "initialize" else {"content": [{"type": "text", "text": PROOF}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
