"""Seconds from a stdio server's start to its answer to `initialize`. Usage: first_reply.py COMMAND…"""

import json
import subprocess
import sys
import time

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "start", "version": "1"}},
}


def main() -> None:
    begun = time.perf_counter()
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(INITIALIZE) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        taken = time.perf_counter() - begun
        server.stdin.close()
    if answer.get("id") != 0 or "result" not in answer:
        sys.exit(f"answered {answer}")
    print(taken)


main()
