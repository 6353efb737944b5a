"""A stand-in for a host: starts servers over stdio, prints their process ids, and runs until its input ends.

``pipe`` and ``socket`` are the kinds of the servers' standard input. ``unreaped`` ends the servers and does not reap
them; ``answered`` waits until each server has answered. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

INITIALIZE = b"""{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",\
 "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}}
"""


def main() -> None:
    mode, number, *command = sys.argv[1:]
    kept = []
    servers = []
    for _ in range(int(number)):
        given = subprocess.PIPE
        if mode == "socket":
            ours, theirs = socket.socketpair()
            kept.append(ours)
            given = theirs.fileno()
        servers.append(subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        if mode == "socket":
            theirs.close()
    for server in servers if mode == "answered" else []:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(INITIALIZE)
        server.stdin.flush()
        server.stdout.readline()
    if mode == "unreaped":
        for server in servers:
            server.kill()
            os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    print(json.dumps([server.pid for server in servers]), flush=True)
    sys.stdin.read()
    for server in servers:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
