"""``mcpace target``: runs a scripted target for trying clients against it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from typing import Annotated

import typer

from mcpace import _core
from mcpace.cli import options
from mcpace.cli.notes import note
from mcpace.lab import targets


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("target")(target)


def target(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help=f"One of {', '.join(_core.PROFILES)}.")],
    port: options.Port = 0,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    response: Annotated[
        str | None, typer.Option(metavar="json|sse", help="How results are sent; the profile's own way unless given.")
    ] = None,
    tls: Annotated[bool, typer.Option(help="Serve HTTPS with a certificate of its own, printed on stdout.")] = False,
    server_timing: Annotated[bool, typer.Option(help="Send the layers' times with each reply.")] = False,
) -> None:
    """Run a scripted MCP server until Ctrl-C. profile:github takes the token in MCPACE_GITHUB_TOKEN."""
    name = profile.removeprefix("profile:")
    options.checked_faults(fault, [targets.parse_target(f"profile:{name}")])
    token = os.environ.get(targets.GITHUB_TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    server = _core.Target(
        name, port=port, hold_s=hold, faults=fault, tls=tls, response=response, token=token, server_timing=server_timing
    )
    with contextlib.suppress(KeyboardInterrupt):
        note(f"{name} serves at {server.url}; Ctrl-C ends it")
        if name == "github" and targets.GITHUB_TOKEN_VARIABLE not in os.environ:
            note(f"its bearer token is {token} (or set {targets.GITHUB_TOKEN_VARIABLE})")
        if server.certificate_pem:
            print(server.certificate_pem, end="", flush=True)
        server.wait()
    counters = server.counters()
    server.stop()
    print(json.dumps(counters, indent=1), file=sys.stderr)
