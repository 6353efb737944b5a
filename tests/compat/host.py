"""Runs server objects of one SDK in processes of their own, forked from a process that has the SDK imported.

Started by hosting.py within the SDK's environment, with the number of a Unix socket as its argument. Each connection
brings one task and three descriptors (standard input, output and error); the answer is the child's process id, and its
exit status when it ends. A child leads its own process group and has limits on CPU time and memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import inspect
import json
import logging
import os
import random
import resource
import selectors
import signal
import socket
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

CPU_LIMIT_S = 40
MEMORY_LIMIT = 6 << 30
"""Limit of address space, which is large because the threads of a runtime reserve much more of it than they use."""

SERVERS = {
    ("mcp.server.mcpserver.server", "MCPServer"): "server",
    ("mcp.server.fastmcp.server", "FastMCP"): "server",
    ("fastmcp.server.server", "FastMCP"): "server",
    ("mcp.server.lowlevel.server", "Server"): "low-level",
    ("mcpace.server.app", "MCPServer"): "swapped",
    ("mcpace.fastmcp.app", "FastMCP"): "swapped",
}
FACTORIES = ("build_server", "create_server", "make_server", "get_server")
LOADED = {
    "mcp-1": ["mcp.server.fastmcp", "mcp.server.lowlevel"],
    "mcp-2": ["mcp.server.mcpserver", "mcp.server.lowlevel"],
    "fastmcp-3": ["fastmcp", "fastmcp.server.dependencies"],
    "fastmcp-4": ["fastmcp", "fastmcp.server.dependencies"],
}
EVERYWHERE = ["uvicorn", "starlette.applications", "mcpace.server.running.runner", "mcpace.server.adopt"]
SWAPS = ["mcpace", "mcpace.types", "mcpace.fastmcp", "mcpace.cli.commands", "mcpace.cli.serve"]
LATER = ["anyio._backends._asyncio", "mcp.server.stdio", "rich.logging", "rich.traceback", "uvicorn.lifespan.on"]
"""Modules that each child would otherwise import when it serves."""


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main(number: int, line: str) -> None:
    # Orphaned processes of a server become children of this process, which ends them.
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    listener = socket.socket(fileno=number)
    for name in [*LOADED[line], *EVERYWHERE, *SWAPS, *LATER]:
        importlib.import_module(name)
    asyncio.run(_warm(line))
    # Memory pages of loaded modules stay shared with the children.
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    # The host ends with the harness.
    watched.register(0, selectors.EVENT_READ)
    running: set[int] = set()
    try:
        while True:
            for key, _ in watched.select():
                if key.fileobj is listener:
                    _start(listener, watched, running)
                elif key.fileobj == 0:
                    return
                else:
                    pid, connection = key.data
                    _, status, usage = os.wait4(pid, 0)
                    running.discard(pid)
                    _end_orphans(running)
                    watched.unregister(key.fileobj)
                    os.close(key.fd)
                    with connection, contextlib.suppress(OSError):
                        told = {"status": os.waitstatus_to_exitcode(status), "rss_kib": usage.ru_maxrss}
                        connection.sendall(json.dumps(told).encode() + b"\n")
    finally:
        for pid in running:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        _end_orphans(set())


def _end_orphans(running: set[int]) -> None:
    with contextlib.suppress(OSError):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for pid in {int(child) for child in children} - running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


async def _warm(line: str) -> None:
    """Serves a request of each kind in memory, so that lazily built models are built before the forks."""
    if line == "mcp-1":
        from mcp.server.fastmcp import FastMCP as Server
        from mcp.shared.memory import create_connected_server_and_client_session

        server = Server("warm")
        client = create_connected_server_and_client_session(server._mcp_server)
    else:
        module = importlib.import_module("mcp" if line == "mcp-2" else "fastmcp")
        server = module.FastMCP("warm") if line != "mcp-2" else importlib.import_module("mcp.server").MCPServer("warm")
        client = module.Client(server)

    async def tool(text: str) -> str:
        return text

    server.tool()(tool)
    server.resource("warm://{text}")(tool)
    server.prompt()(tool)
    async with client as session:
        await session.list_tools()
        await session.list_resources()
        await session.list_resource_templates()
        await session.list_prompts()
        await session.call_tool("tool", {"text": "warm"})
        await session.read_resource("warm://one")
        await session.get_prompt("tool", {"text": "warm"})


def _start(listener: socket.socket, watched: selectors.BaseSelector, running: set[int]) -> None:
    connection, _ = listener.accept()
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            listener.close()
            watched.close()
            connection.close()
            code = _child(json.loads(data), descriptors)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code or 0)
    for descriptor in descriptors:
        os.close(descriptor)
    running.add(pid)
    connection.sendall(json.dumps({"pid": pid}).encode() + b"\n")
    watched.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))


def _child(task: dict[str, Any], descriptors: list[int]) -> int:
    os.setsid()
    # The servers end with the host, however it ends.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # Python's own streams remember whether their file is seekable, so they are created anew for these files.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(task["folder"])
    # Coloured tracebacks take more time than all requests together.
    logging.disable(logging.CRITICAL)
    # Random values must differ between runs, as in a process that was not forked.
    random.seed()
    sys.path[:] = [*task["paths"], *(entry for entry in sys.path if entry)]
    if task["do"] == "look":
        # Modules may print during their import.
        answer = os.dup(1)
        os.dup2(2, 1)
        found = _servers(Path(task["file"]))
        os.write(answer, json.dumps(found).encode())
        return 0
    if task["do"] == "adopt":
        return _adopt(task)
    return _serve(_made(_module(Path(task["file"])), task["object"]), task)


def _adopt(task: dict[str, Any]) -> int:
    from mcpace.cli.main import main as mcpace

    place = ["--transport", "stdio"] if task["transport"] == "stdio" else ["--port", str(task["port"])]
    sys.argv = ["mcpace", "serve", f"{task['file']}:{task['object']}", *place]
    return int(mcpace() or 0)  # type: ignore[func-returns-value]


def _module(path: Path) -> ModuleType:
    """Imports a file as a module with the name that `mcpace serve` gives it."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_served_file"
    sys.argv = [str(path)]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _kind(value: object) -> str | None:
    for base in type(value).__mro__:
        if kind := SERVERS.get((base.__module__, base.__qualname__)):
            return kind
    return None


def _servers(path: Path) -> list[dict[str, str]]:
    """The server objects of a file, and the functions that make one."""
    module = _module(path)
    found, seen = [], set()
    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        made = value
        if inspect.isfunction(value) and value.__module__ == module.__name__ and _makes_one(value):
            with contextlib.suppress(Exception):
                made = value()
        kind = _kind(made)
        if kind is None or id(made) in seen:
            continue
        seen.add(id(made))
        settings = getattr(made, "settings", None)
        found.append({"name": name, "kind": kind, "path": getattr(settings, "streamable_http_path", None) or "/mcp"})
    return found


def _makes_one(function: Any) -> bool:
    told = function.__annotations__.get("return")
    named = told if isinstance(told, str) else getattr(told, "__name__", "")
    wanted = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (2, 4)
    ]
    is_one = named.split("[")[0] in ("MCPServer", "FastMCP", "Server") or function.__name__ in FACTORIES
    return is_one and not wanted and not inspect.iscoroutinefunction(function)


def _made(module: ModuleType, name: str) -> Any:
    found = getattr(module, name)
    return found if _kind(found) else found()


def _serve(server: Any, task: dict[str, Any]) -> int:
    is_stdio, port = task["transport"] == "stdio", task["port"]
    if task["way"] == "swapped" and _kind(server) != "swapped":
        sys.stderr.write(f"{task['object']} is still a {type(server).__module__}.{type(server).__qualname__}\n")
        return 71
    if _kind(server) == "low-level":
        _serve_low_level(server, is_stdio, task)
    elif hasattr(server, "http_app"):
        where = {} if is_stdio else {"host": "127.0.0.1", "port": port}
        server.run(transport="stdio" if is_stdio else "http", show_banner=False, **where)
    elif is_stdio:
        server.run("stdio")
    elif type(server).__module__.startswith("mcp.server.fastmcp") or (
        _kind(server) == "server" and hasattr(server.settings, "port")
    ):
        server.settings.port = port
        server.run("streamable-http")
    else:
        server.run("streamable-http", port=port)
    return 0


def _serve_low_level(server: Any, is_stdio: bool, task: dict[str, Any]) -> None:
    import anyio
    import uvicorn
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    async def over_stdio() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if is_stdio:
        anyio.run(over_stdio)
        return
    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.run(app, host="127.0.0.1", port=task["port"], log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
