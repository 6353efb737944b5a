"""Serves examples as their SDK serves them: its own HTTP application, on uvicorn.

Usage: original.py EXAMPLE.py:json|sse:sessions|stateless …; prints one line, a JSON list of ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn


async def main(subjects: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    servers, ports = [], []
    for number, subject in enumerate(subjects):
        path, mode, sessions = subject.rsplit(":", 2)
        app = application(load(path, number), mode == "json", sessions == "stateless")
        listener = socket.create_server(("127.0.0.1", 0))
        ports.append(listener.getsockname()[1])
        config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=1)
        servers.append((uvicorn.Server(config), listener))
    running = [asyncio.create_task(server.serve(sockets=[listener])) for server, listener in servers]
    while not all(server.started for server, _ in servers):
        ended = [task for task in running if task.done()]
        for task in ended:
            task.result()
        await asyncio.sleep(0.01)
    print(json.dumps(ports), flush=True)
    await asyncio.gather(*running)


def load(path: str, number: int) -> Any:
    """The example's server object, of a module of its own: one object is served once."""
    name = f"{Path(path).stem}_{number}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where the annotations of its functions are looked up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, "mcp", None) or module.server


def application(server: Any, json_response: bool, stateless: bool) -> Any:
    if hasattr(server, "http_app"):
        return server.http_app(json_response=json_response, stateless_http=stateless)
    if hasattr(server, "settings") and hasattr(server.settings, "json_response"):
        server.settings.json_response, server.settings.stateless_http = json_response, stateless
        return server.streamable_http_app()
    if hasattr(server, "streamable_http_app"):
        return server.streamable_http_app(json_response=json_response, stateless_http=stateless)
    return low_level(server, json_response, stateless)


def low_level(server: Any, json_response: bool, stateless: bool) -> Any:
    """As the SDK's own examples of low-level servers do it in 1.x."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(app=server, json_response=json_response, stateless=stateless)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    # Under the root: a Mount at "/mcp" would send "/mcp" on to "/mcp/".
    return Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
