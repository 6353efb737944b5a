"""``mcpace serve``: serves a server object of mcpace or of another SDK with the runtime."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from mcpace.cli.times import parse_seconds
from mcpace.server.running.settings import GRACE_S, METRICS_HOST, MOST_WORKERS, Settings, log_level, transport

TransportName = StrEnum("TransportName", ["http", "streamable-http", "sse", "stdio"])
OnStoreDownName = StrEnum("OnStoreDownName", ["refuse", "memory"])
LogLevelName = StrEnum("LogLevelName", ["critical", "error", "warning", "info", "debug"])


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("serve")(serve)


def serve(
    server: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:SERVER",
            help="The server object, or a function that makes it; FILE.py:SERVER too. Without :SERVER it is mcp, "
            "server or app. An MCPServer of mcpace, or an unchanged server object of the official SDK or FastMCP.",
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGUMENTS", help="Arguments for the module's sys.argv.")
    ] = None,
    transport_name: Annotated[
        TransportName, typer.Option("--transport", "-t", help="http and streamable-http are the same.")
    ] = TransportName["http"],
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on. 0.0.0.0 listens on all addresses: see --allowed-host. Host, port, path, JSON "
            "and sessions default to the server object's own settings.",
            show_default="127.0.0.1",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", help="0 picks a free port.", min=0, max=65535, show_default="8000"),
    ] = None,
    path: Annotated[str | None, typer.Option(help="Path of the endpoint.", show_default="/mcp")] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that share the port. Each has a copy of the server's Python state, and a process that "
            "dies is replaced. Requests of a session are forwarded to the process that has the session. Without "
            "--store, a session ends with its process, and clients are notified only of changes in their own process.",
            min=1,
            max=MOST_WORKERS,
        ),
    ] = 1,
    json_response: Annotated[
        bool | None,
        typer.Option(
            "--json-response/--no-json-response",
            help="Answer with JSON only. Otherwise events are streamed where needed.",
            show_default="no-json-response",
        ),
    ] = None,
    stateless: Annotated[
        bool | None,
        typer.Option(
            "--stateless/--no-stateless",
            help="No sessions in revisions before 2026-07-28. Later revisions have none.",
            show_default="no-stateless",
        ),
    ] = None,
    ssl_certfile: Annotated[str | None, typer.Option(metavar="FILE", help="TLS: the certificate chain, PEM.")] = None,
    ssl_keyfile: Annotated[str | None, typer.Option(metavar="FILE", help="TLS: the private key, PEM.")] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A host name that requests may use, in addition to loopback names; * allows any. Repeatable.",
        ),
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="An origin of web pages that may call, e.g. https://app.example, in addition to loopback. Browsers "
            "also need CORS headers, which a proxy has to add. Repeatable.",
        ),
    ] = None,
    graceful_timeout: Annotated[
        float,
        typer.Option(
            parser=parse_seconds, metavar="TIME", help="Time for calls in flight to finish when the server is stopped."
        ),
    ] = f"{GRACE_S:g}s",  # type: ignore[assignment] # typer parses defaults too
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="MCPACE_STORE",
            help="redis://HOST:6379/0: keep sessions and streams in Redis, for all processes of the server. Put a URL "
            "with a password into the environment.",
        ),
    ] = None,
    on_store_down: Annotated[
        OnStoreDownName,
        typer.Option(
            help="While the store cannot be reached: refuse requests of sessions, or continue in each process's memory."
        ),
    ] = OnStoreDownName["refuse"],
    store_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Prefix of the store's keys, equal for servers that share sessions. [default: mcpace: and the "
            "server's name]",
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: start again when a Python file changes (mcpace[reload]).")
    ] = False,
    reload_dir: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="A folder that --reload watches, instead of the current one. Repeatable."),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="A line on stderr for each request.")
    ] = False,
    log_level_name: Annotated[
        LogLevelName | None,
        typer.Option("--log-level", help="Level of the log on stderr. [default: the server's own, or info]"),
    ] = None,
    server_timing: Annotated[
        bool, typer.Option("--server-timing/--no-server-timing", help="Send the layers' times with each reply.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics (mcpace[otel]); each further worker "
            "has the next port.",
            min=1,
            max=65535,
        ),
    ] = None,
    metrics_host: Annotated[
        str,
        typer.Option(help="Address of --metrics-port. The metrics ask for no token and show the names of tools."),
    ] = METRICS_HOST,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No start message on stderr.")] = False,
) -> None:
    """Serve an MCP server from the runtime until Ctrl-C or SIGTERM.

    The first signal lets calls in flight finish, a second one ends at once. Exit codes: 0 after SIGTERM or the end of
    stdin, 130 after Ctrl-C, 2 usage, 3 the server could not be set up.
    """
    # Imported late, so that the process of the server imports as little as possible.
    from mcpace.server.running.runner import run_target

    # Settings that the server object may also have.
    own: dict[str, Any] = {
        "host": host,
        "port": port,
        "path": path,
        "json_response": json_response,
        "stateless": stateless,
        "allowed_hosts": tuple(allowed_host) if allowed_host else None,
        "allowed_origins": tuple(allowed_origin) if allowed_origin else None,
    }
    given = {name: value for name, value in own.items() if value is not None}
    settings = Settings(
        **given,
        given=tuple(given),
        transport=transport(transport_name.value),
        workers=workers,
        ssl_certfile=ssl_certfile,
        ssl_keyfile=ssl_keyfile,
        access_log=access_log,
        log_level=log_level(log_level_name.value) if log_level_name is not None else None,
        server_timing=server_timing,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        quiet=quiet,
        graceful_timeout_s=graceful_timeout,
        store=store,
        on_store_down="memory" if on_store_down == "memory" else "refuse",
        store_prefix=store_prefix,
        reload=reload,
        reload_dirs=tuple(reload_dir or ()),
    )
    run_target(server, settings, arguments or ())
