"""Serves each server of `servers` with one SDK (`FACE`), holds its dialogue in both eras, and prints the replies.

One line of JSON on stdout: the dialogues, and by server and era a list of the replies to each request (several, where
a request took several rounds). Runs in an environment of its own for the official SDK, and in ours for mcpace.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from face import FACE

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
PREFIX = "io.modelcontextprotocol/"
ROUNDS = 4


def main() -> None:
    logging.disable(logging.CRITICAL)
    dialogues, replies = {}, {}
    for file in sorted((Path(__file__).parent / "servers").glob("*.py")):
        module = importlib.import_module(f"servers.{file.stem}")
        with served(module.server) as port:
            replies[file.stem] = {era: talk(port, era, module.DIALOGUE) for era in ("legacy", "modern")}
            dialogues[file.stem] = module.DIALOGUE
    print(json.dumps({"dialogues": dialogues, "replies": replies}))


@contextlib.contextmanager
def served(server: Any) -> Iterator[int]:
    if FACE == "mcp":
        with original(server) as port:
            yield port
    else:
        with ours(server) as port:
            yield port


@contextlib.contextmanager
def original(server: Any) -> Iterator[int]:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    program = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=program.run, args=([listener],))
    thread.start()
    while not program.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        program.should_exit = True
        thread.join()


@contextlib.contextmanager
def ours(server: Any) -> Iterator[int]:
    from mcpace import _core
    from mcpace.server.running.lifespans import RunningLifespan

    prepared = server.__mcpace__()
    with RunningLifespan(prepared):
        running = prepared.core.serve_http(_core.HttpOptions(port=0, stateless=True, response="json"))
        try:
            yield running.port
        finally:
            running.stop()


def talk(port: int, era: str, dialogue: list[Any]) -> list[list[Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    replies = []
    for method, params, *rest in dialogue:
        details = rest[0] if rest else {}
        rounds = [ask(connection, era, method, params, details)]
        for answer in details.get("answers", ()) if era == "modern" else ():
            questions = rounds[-1].get("result", {}).get("inputRequests")
            if not questions or len(rounds) > ROUNDS:
                break
            more = {
                "inputResponses": {
                    key: answer.get(f"*{question['method']}", answer) for key, question in questions.items()
                },
                "requestState": rounds[-1]["result"].get("requestState"),
            }
            more = {key: value for key, value in more.items() if value is not None}
            rounds.append(ask(connection, era, method, params | more, details))
        replies.append(rounds)
    connection.close()
    return replies


def ask(connection: http.client.HTTPConnection, era: str, method: str, params: Any, details: Any) -> dict[str, Any]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "X-Test": "seen",
        "MCP-Protocol-Version": MODERN if era == "modern" else LEGACY,
    }
    params = dict(params)
    if era == "modern":
        params["_meta"] = {
            PREFIX + "protocolVersion": MODERN,
            PREFIX + "clientInfo": {"name": "parity", "version": "1"},
            PREFIX + "clientCapabilities": details.get("capabilities", {}),
        }
        headers["Mcp-Method"] = method
        name = params.get("name") or params.get("uri")
        if name and method in ("tools/call", "prompts/get", "resources/read"):
            headers["Mcp-Name"] = name
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/mcp", body.encode(), headers)
    response = connection.getresponse()
    content = response.read()
    try:
        reply = json.loads(content)
    except ValueError:
        return {"status": response.status, "body": content.decode(errors="replace")}
    reply["status"] = response.status
    return reply


if __name__ == "__main__":
    main()
