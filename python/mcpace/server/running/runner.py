"""Entry points of the runner: they serve a target or a server object by settings, and return an exit code.

A target of one process is served by this process. With several workers, or with reloading, this process is their parent
and never imports the author's module. An existing object (``MCPServer.run()``) is served by this process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mcpace import _core
from mcpace.server.running import in_process, loader, log_setup, tracebacks
from mcpace.server.running.addresses import Address
from mcpace.server.running.effective_settings import with_own_settings
from mcpace.server.running.errors import EXIT_INTERRUPTED, AuthorProblem, RunProblem, SetupProblem
from mcpace.server.running.messages import say, write
from mcpace.server.running.prepared import Prepared, prepare
from mcpace.server.running.settings import Settings
from mcpace.server.running.startup_message import print_startup, startup_facts


def run_target(text: str, settings: Settings, arguments: Sequence[str] = ()) -> NoReturn:
    """Serves ``MODULE:SERVER`` until this process ends. Its module finds ``arguments`` in ``sys.argv``.

    Raises :class:`RunProblem`.
    """
    target = loader.parse(text)
    if settings.workers > 1 or settings.reload:
        # Imported late: most servers have one process.
        from mcpace.server.running.supervised_run import run_supervised

        sys.exit(run_supervised(text, settings, arguments))
    sys.argv[:] = [text, *arguments]
    if settings.is_http:
        run_prepared(lambda: prepare(loader.load(target)), settings)
    # Output and input of the module are no part of the protocol.
    with in_process.stdio_kept():
        prepared, settings = _with_effective_settings(lambda: prepare(loader.load(target)), settings)
    in_process.exit_process(_serve_prepared(prepared, settings))


def run_prepared(make: Callable[[], Prepared], settings: Settings) -> NoReturn:
    """Serves the server that ``make`` returns until this process ends. Raises :class:`RunProblem`."""
    in_process.exit_process(_serve_prepared(*_with_effective_settings(make, settings)))


def run_object(server: object, settings: Settings) -> None:
    """Serves an object in this process. Returns after SIGTERM or the end of stdin; exits with 130 after Ctrl-C."""
    try:
        code = _serve_prepared(*_with_effective_settings(lambda: prepare(server), settings))
    except AuthorProblem as problem:
        raise problem.cause from None
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        # SystemExit shows no traceback, and `finally` blocks run.
        raise SystemExit(code)


async def run_object_async(server: object, settings: Settings) -> None:
    """Serves an object until the caller's task is cancelled."""
    # Imported late: a server of functions that are not async starts without an event loop.
    import asyncio

    prepared, settings = _with_effective_settings(lambda: prepare(server), settings)
    try:
        if not settings.is_http:
            await asyncio.to_thread(
                in_process.serve_stdio,
                prepared,
                lambda: print_startup(startup_facts(prepared, settings, ""), settings, None),
            )
            return
        address = Address.resolved(settings.host, settings.port)
        served = in_process.HttpServer(prepared, settings, address)
        await asyncio.to_thread(served.enter)
        url = await asyncio.to_thread(served.begin)
        print_startup(startup_facts(prepared, settings, url), settings, address)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            # The canceller waits, so that calls in flight can finish.
            await asyncio.shield(asyncio.to_thread(served.end))
    except AuthorProblem as problem:
        raise problem.cause from None


def run_worker(order: Mapping[str, Any], report: Callable[..., None]) -> NoReturn:
    """Serves as one of several processes by its parent's ``order``. Prints the reason if it can't serve."""
    settings = Settings.from_json(order["settings"])
    if settings.reload:
        # Python takes compiled code for current where a change keeps the file's size within one second.
        sys.dont_write_bytecode = True
    address = Address(*order["address"])
    _core.set_process_key(bytes.fromhex(order["key"]))
    family = (int(order["number"]) - 1, list(order["family"]))
    try:
        target = loader.parse(order["target"])
        prepared, settings = _with_effective_settings(
            lambda: prepare(loader.load(target)), settings, parent=address, number=family[0] + 1
        )
        code = in_process.serve_http(
            prepared,
            settings,
            address,
            lambda url: report(serves=True, **startup_facts(prepared, settings, url)),
            family=family,
        )
    except RunProblem as problem:
        report_problem(problem)
        report(serves=False, exit_code=problem.exit_code)
        code = problem.exit_code
    in_process.exit_process(code)


def report_problem(problem: RunProblem) -> None:
    """Reports a problem: one sentence, or the author's traceback."""
    if isinstance(problem, AuthorProblem):
        write(tracebacks.author_traceback(problem.cause))
    else:
        say(str(problem))


def _serve_prepared(prepared: Prepared, settings: Settings) -> int:
    if not settings.is_http:
        return in_process.serve_stdio(
            prepared, lambda: print_startup(startup_facts(prepared, settings, ""), settings, None)
        )
    address = Address.resolved(settings.host, settings.port)

    def on_ready(url: str) -> None:
        print_startup(startup_facts(prepared, settings, url), settings, address)

    return in_process.serve_http(prepared, settings, address, on_ready)


def _with_effective_settings(
    make: Callable[[], Prepared], settings: Settings, parent: Address | None = None, number: int = 1
) -> tuple[Prepared, Settings]:
    """A server and its effective settings; ``parent`` is the address that a parent listens on.

    ``number``: this process among the workers, from 1.
    """
    if settings.metrics_port is not None:
        from mcpace.server.telemetry import serve_metrics

        serve_metrics(Address.resolved(settings.metrics_host, settings.metrics_port + number - 1))
    try:
        prepared = make()
    except _core.EnvironmentProblem as problem:
        # The Redis of the rate limits is unreachable.
        raise SetupProblem(str(problem)) from problem
    if settings.metrics_port is not None:
        from mcpace.server.telemetry import observe_metrics

        observe_metrics(prepared.core)
    # After the import, so that logging handlers of the author stay.
    log_setup.run_at(settings.log_level)
    return with_own_settings(prepared, settings, parent)
