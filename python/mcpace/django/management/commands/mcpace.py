"""``manage.py mcpace``: serves the project's MCP endpoint from the runtime, in processes with Django set up.

No ASGI or WSGI server is involved: the compiled part reads and answers requests, and only the tools' own code is
Python. Workers and reloading work as in ``mcpace serve``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings as project
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcpace.django.conf import setting
from mcpace.django.served import PLACE, TARGET, load_server
from mcpace.django.stores import store_settings
from mcpace.server.running.errors import AuthorProblem, RunProblem
from mcpace.server.running.messages import say
from mcpace.server.running.prepared import prepare
from mcpace.server.running.settings import GRACE_S, Settings


class Command(BaseCommand):
    """The command ``manage.py mcpace``."""

    help = "Serves the project's MCP server: MCPACE['SERVER'], or the one that is named."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the options of ``mcpace serve``."""
        parser.add_argument("server", nargs="?", help="MODULE:SERVER; the setting MCPACE['SERVER'] if not said")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", "-p", type=int, default=8000, help="0 takes any that is free")
        parser.add_argument("--path", default="/mcp", help="of the endpoint")
        parser.add_argument("--workers", type=int, default=1, help="processes that share the port")
        parser.add_argument("--reload", action="store_true", help="start again when a Python file changes")
        parser.add_argument("--stdio", action="store_true", help="serve stdin and stdout, for one client")
        parser.add_argument("--json-response", action="store_true", help="answer with JSON only")
        parser.add_argument("--stateless", action="store_true", help="no sessions")
        parser.add_argument("--ssl-certfile", help="TLS: the certificate chain, PEM")
        parser.add_argument("--ssl-keyfile", help="TLS: its key, PEM")
        parser.add_argument("--graceful-timeout", type=float, default=GRACE_S, help="seconds for calls in flight")
        parser.add_argument("--access-log", action="store_true", help="a line on stderr for each request")
        parser.add_argument(
            "--store",
            help="redis://… or cache:NAME[/DATABASE] of CACHES, for sessions; else MCPACE['STORE']",
        )
        parser.add_argument("--server-timing", action="store_true", help="tell the layers' times with each reply")

    def handle(self, *_: Any, **options: Any) -> None:
        """Serves until a signal arrives."""
        try:
            self._serve(options)
        except AuthorProblem as problem:
            raise problem.cause from None
        except RunProblem as problem:
            raise CommandError(str(problem), returncode=problem.exit_code) from problem

    def _serve(self, options: dict[str, Any]) -> None:
        from mcpace.server.running.runner import run_prepared, run_target

        place = options["server"] or setting("SERVER")
        if not place:
            raise CommandError("which server? Set MCPACE = {'SERVER': 'project.mcp:server'}, or name it here")
        settings = _settings(options)
        if settings.workers > 1 or settings.reload:
            # The environment lets each worker process find the project as manage.py does.
            os.environ[PLACE] = place
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", project.SETTINGS_MODULE)
            known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
            here = [str(Path(part or ".").resolve()) for part in sys.path[:1]]
            os.environ["PYTHONPATH"] = os.pathsep.join([*here, *known])
            run_target(TARGET, settings)
        run_prepared(lambda: prepare(load_server(place)), settings)


def _settings(options: dict[str, Any]) -> Settings:
    is_stateless = options["stateless"] or bool(setting("STATELESS"))
    has_store = options["store"] is not None or not (options["stdio"] or is_stateless)
    named, what = (options["store"], "--store") if options["store"] is not None else (setting("STORE"), "STORE")
    return Settings(
        transport="stdio" if options["stdio"] else "http",
        host=options["host"],
        port=options["port"],
        path=options["path"],
        workers=options["workers"],
        reload=options["reload"],
        json_response=options["json_response"],
        stateless=is_stateless,
        ssl_certfile=options["ssl_certfile"],
        ssl_keyfile=options["ssl_keyfile"],
        graceful_timeout_s=options["graceful_timeout"],
        access_log=options["access_log"],
        server_timing=options["server_timing"],
        max_body=setting("MAX_REQUEST_BYTES"),
        allowed_hosts=_hosts(),
        allowed_origins=tuple(setting("ALLOWED_ORIGINS")),
        **(store_settings(named, what) if has_store else {}),
    )


def _hosts() -> tuple[str, ...]:
    """``ALLOWED_HOSTS`` for the runtime, whose only wildcard is ``*``."""
    families = [host for host in project.ALLOWED_HOSTS if host.startswith(".")]
    if families:
        # `.example.com` includes the domain itself, which can be listed. Its subdomains are unknown.
        say(
            f"of {', '.join(families)} in ALLOWED_HOSTS only {', '.join(host[1:] for host in families)} is known here: "
            "name the hosts under it that clients use"
        )
    return tuple(host.removeprefix(".") for host in project.ALLOWED_HOSTS)
