"""The echo tool written by hand on granian's own interface (RSGI): the cost of HTTP and JSON in Python, without an SDK.

It reads the message, finds the tool and answers, and does nothing else that the protocol asks for.
"""

import orjson

HEADERS = [("content-type", "application/json")]
TOOL = {
    "description": "Says the text again",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1"},
}
TOOLS = {"echo": lambda text: text}


async def app(scope, protocol):
    message = orjson.loads(await protocol())
    method = message["method"]
    if method == "tools/call":
        params = message["params"]
        text = TOOLS[params["name"]](**params["arguments"])
        result = {"content": [{"type": "text", "text": text}]}
    elif method == "tools/list":
        result = {"tools": [{"name": name} | TOOL for name in TOOLS]}
    else:
        result = INITIALIZED
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    protocol.response_bytes(200, HEADERS, orjson.dumps(answer))
