"""From a target or a server object, and settings, to serving and an exit code: the ways that there are.

A target served by one process is served by this one. Several workers, or reloading, have a parent (this process) that
never imports the author's module. An object that is there already (``MCPServer.run()``) is served by this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mcpace import _core
from mcpace.server.running import in_process, loader, log_setup, tracebacks
from mcpace.server.running.addresses import Address, Reserved
from mcpace.server.running.child import Child
from mcpace.server.running.effective_settings import settled
from mcpace.server.running.errors import EXIT_INTERRUPTED, AuthorProblem, RunProblem, SetupProblem
from mcpace.server.running.messages import say, write
from mcpace.server.running.prepared import Prepared, prepare
from mcpace.server.running.reload import watching
from mcpace.server.running.settings import Settings
from mcpace.server.running.startup_message import announce, facts
from mcpace.server.running.supervisor import Plan, supervise


def run_target(text: str, settings: Settings, arguments: Sequence[str] = ()) -> NoReturn:
    """Serves ``MODULE:SERVER`` to the end of this process. ``arguments`` are what its module finds in ``sys.argv``.

    Raises :class:`RunProblem`.
    """
    target = loader.parse(text)
    if settings.workers > 1 or settings.reload:
        sys.exit(_supervised(text, settings, arguments))
    sys.argv[:] = [text, *arguments]
    if settings.is_http:
        run_prepared(lambda: prepare(loader.load(target)), settings)
    # What the module prints is no part of the protocol, nor is what it reads.
    with in_process.stdio_kept():
        prepared, settings = _ready(lambda: prepare(loader.load(target)), settings)
    in_process.leave(_serve(prepared, settings))


def run_prepared(make: Callable[[], Prepared], settings: Settings) -> NoReturn:
    """Serves what ``make`` returns, in this process, to its end. Raises :class:`RunProblem`."""
    in_process.leave(_serve(*_ready(make, settings)))


def run_object(server: object, settings: Settings) -> None:
    """Serves an object in this process; returns where it was told to end, leaves with 130 after Ctrl-C."""
    try:
        code = _serve(*_ready(lambda: prepare(server), settings))
    except AuthorProblem as problem:
        raise problem.cause from None
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        # No traceback, and what stands in `finally` is done.
        raise SystemExit(code)


async def run_object_async(server: object, settings: Settings) -> None:
    """Serves an object until the caller's task is cancelled."""
    prepared, settings = _ready(lambda: prepare(server), settings)
    try:
        if not settings.is_http:
            await asyncio.to_thread(
                in_process.serve_stdio, prepared, lambda: announce(facts(prepared, settings, ""), settings, None)
            )
            return
        address = Address.resolved(settings.host, settings.port)
        served = in_process.Served(prepared, settings, address)
        await asyncio.to_thread(served.enter)
        url = await asyncio.to_thread(served.begin)
        announce(facts(prepared, settings, url), settings, address)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            # Whoever cancels waits: calls in flight get their time.
            await asyncio.shield(asyncio.to_thread(served.end))
    except AuthorProblem as problem:
        raise problem.cause from None


def run_worker(order: Mapping[str, Any], report: Callable[..., None]) -> NoReturn:
    """Serves as one of several processes, as its parent's ``order`` says. What keeps it from that, it says itself."""
    settings = Settings.from_json(order["settings"])
    address = Address(*order["address"])
    _core.set_process_key(bytes.fromhex(order["key"]))
    family = (int(order["number"]) - 1, list(order["family"]))
    try:
        target = loader.parse(order["target"])
        prepared, settings = _ready(lambda: prepare(loader.load(target)), settings, parent=address)
        code = in_process.serve_http(
            prepared,
            settings,
            address,
            lambda url: report(serves=True, **facts(prepared, settings, url)),
            family=family,
        )
    except RunProblem as problem:
        tell(problem)
        report(serves=False, exit_code=problem.exit_code)
        code = problem.exit_code
    in_process.leave(code)


def tell(problem: RunProblem) -> None:
    """Says what went wrong: one sentence of ours, or the author's own traceback."""
    if isinstance(problem, AuthorProblem):
        write(tracebacks.shown(problem.cause))
    else:
        say(str(problem))


def _serve(prepared: Prepared, settings: Settings) -> int:
    if not settings.is_http:
        return in_process.serve_stdio(prepared, lambda: announce(facts(prepared, settings, ""), settings, None))
    address = Address.resolved(settings.host, settings.port)

    def on_ready(url: str) -> None:
        announce(facts(prepared, settings, url), settings, address)

    return in_process.serve_http(prepared, settings, address, on_ready)


def _ready(
    make: Callable[[], Prepared], settings: Settings, parent: Address | None = None
) -> tuple[Prepared, Settings]:
    """A server and the settings that it is served with; ``parent`` is the address that a parent listens on already."""
    try:
        prepared = make()
    except _core.EnvironmentProblem as problem:
        # A Redis that counts rate limits, and isn't there.
        raise SetupProblem(str(problem)) from problem
    # After the import: an author who set logging up keeps the handlers.
    log_setup.run_at(settings.log_level)
    return settled(prepared, settings, parent)


def _supervised(text: str, settings: Settings, arguments: Sequence[str]) -> int:
    with contextlib.ExitStack() as held:
        changes = held.enter_context(watching(settings)) if settings.reload else None
        reserved = held.enter_context(contextlib.closing(Reserved(Address.resolved(settings.host, settings.port))))
        # Only this user may enter it; in it the workers pass on to each other what is another's.
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="mcpace-"))
        order = {
            "target": text,
            "arguments": list(arguments),
            "settings": settings.to_json(),
            "address": [reserved.address.host, reserved.address.port],
            "family": [str(Path(folder) / str(number)) for number in range(1, settings.workers + 1)],
            "key": secrets.token_hex(32),
        }
        # -P: our own modules are never looked for in the folder that we are in.
        command = [sys.executable, *_interpreter_flags(), "-P", "-m", "mcpace.server.running.worker"]

        def start(number: int) -> Child:
            return Child(number, command, json.dumps(order | {"number": number}))

        def on_ready(told: dict[str, Any]) -> None:
            announce(told, settings, reserved.address)

        return supervise(Plan(start, settings.workers, settings.graceful_timeout_s, on_ready, changes))


def _interpreter_flags() -> list[str]:
    """Those that this interpreter was started with, as multiprocessing passes them on."""
    return list(subprocess._args_from_interpreter_flags())  # type: ignore[attr-defined]
