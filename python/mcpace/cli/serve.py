"""``mcpace serve``: a server object of ours or of another SDK, served by the runtime."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from mcpace.cli.times import seconds
from mcpace.server.running.settings import GRACE_S, MOST_WORKERS, Settings, log_level, transport

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
            "server or app. Our own MCPServer, or one of the official SDK or of FastMCP, as it is.",
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGUMENTS", help="What the module finds in sys.argv.")
    ] = None,
    transport_name: Annotated[
        TransportName, typer.Option("--transport", "-t", help="http and streamable-http are one.")
    ] = TransportName["http"],
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on. 0.0.0.0 is all of this machine's: see --allowed-host. The server object's own, "
            "if not said; so are port, path, JSON and sessions.",
            show_default="127.0.0.1",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", help="0 takes any that is free.", min=0, max=65535, show_default="8000"),
    ] = None,
    path: Annotated[str | None, typer.Option(help="Of the endpoint.", show_default="/mcp")] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that share the port. Each has a copy of the server's Python state, and one that dies is "
            "replaced. A session lives in one of them, and its requests find it whichever takes them in; it ends with "
            "it where there is no --store. Changes that one makes to its tools, lists and resources are told to its "
            "own clients only.",
            min=1,
            max=MOST_WORKERS,
        ),
    ] = 1,
    json_response: Annotated[
        bool | None,
        typer.Option(
            "--json-response/--no-json-response",
            help="Answer with JSON only; a stream of events where one is needed if not.",
            show_default="no-json-response",
        ),
    ] = None,
    stateless: Annotated[
        bool | None,
        typer.Option(
            "--stateless/--no-stateless",
            help="No sessions for the revisions before 2026-07-28, which has none.",
            show_default="no-stateless",
        ),
    ] = None,
    ssl_certfile: Annotated[str | None, typer.Option(metavar="FILE", help="TLS: the certificate chain, PEM.")] = None,
    ssl_keyfile: Annotated[str | None, typer.Option(metavar="FILE", help="TLS: its key, PEM.")] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST", help="A name that requests may give as their host, beside loopback's. * is any. Repeatable."
        ),
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Web pages that may call, as https://app.example, beside loopback's. Browsers also ask for CORS "
            "headers, which a proxy in front has to add. Repeatable.",
        ),
    ] = None,
    graceful_timeout: Annotated[
        float,
        typer.Option(
            parser=seconds, metavar="TIME", help="What calls in flight get to finish when the server is stopped."
        ),
    ] = f"{GRACE_S:g}s",  # type: ignore[assignment] # typer parses defaults too
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="MCPACE_STORE",
            help="redis://HOST:6379/0: keep sessions and streams there, for all processes that serve the same; with a "
            "password, better in the environment.",
        ),
    ] = None,
    on_store_down: Annotated[
        OnStoreDownName,
        typer.Option(help="While the store is away: refuse requests of sessions, or go on in each process's memory."),
    ] = OnStoreDownName["refuse"],
    store_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the store's keys begin with, the same for who shares sessions; if not said, mcpace: and the "
            "server's name.",
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: start again when a Python file changes (mcpace[reload]).")
    ] = False,
    reload_dir: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="What --reload watches; this folder if not said. Repeatable."),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="A line on stderr for each request.")] = False,
    log_level_name: Annotated[
        LogLevelName | None,
        typer.Option("--log-level", help="Of what is logged on stderr; the server's own (or info) if not said."),
    ] = None,
    server_timing: Annotated[
        bool, typer.Option("--server-timing", help="Tell the layers' times with each reply.")
    ] = False,
) -> None:
    """Serve an MCP server from the runtime until Ctrl-C or SIGTERM.

    The first signal lets calls in flight finish, a second one ends at once. Exit codes: 0 after SIGTERM or the end of
    stdin, 130 after Ctrl-C, 2 usage, 3 the server could not be set up.
    """
    # Not before the command is known: what is served should find the process as small as can be.
    from mcpace.server.running.runner import run_target

    # Those that the server object may have, too.
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
        graceful_timeout_s=graceful_timeout,
        store=store,
        on_store_down="memory" if on_store_down == "memory" else "refuse",
        store_prefix=store_prefix,
        reload=reload,
        reload_dirs=tuple(reload_dir or ()),
    )
    run_target(server, settings, arguments or ())
