"""Running a server: the server object is found, prepared, and served over HTTP or stdio by one process or several.

Design constraint: light. Nothing here imports the command line, the lab, or a server's SDK that its author did not.

:func:`run`, :func:`run_async` and :func:`asgi` serve an existing server object; :mod:`.runner` serves what the command
line names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpace.server.running.application import Application
    from mcpace.server.running.host_policy import HostPolicy
    from mcpace.server.running.settings import Settings


def run(server: object, *, transport: str = "stdio", **options: Any) -> None:
    """Serves a server object in this process until a signal comes, or stdin ends. Only on the main thread.

    Ctrl-C leaves the process with 130 once calls in flight are finished; an exception of the author's lifespan is
    raised unchanged. Other problems are a :class:`mcpace.server.running.errors.RunProblem` with a message of one
    sentence. The options are the fields of :class:`mcpace.server.running.settings.Settings`.
    """
    from mcpace.server.running.runner import run_object

    run_object(server, _settings(transport, options))


async def run_async(server: object, *, transport: str = "stdio", **options: Any) -> None:
    """Serves a server object within a running event loop, until the task is cancelled."""
    from mcpace.server.running.runner import run_object_async

    await run_object_async(server, _settings(transport, options))


def asgi(server: object, *, transport: str = "http", policy: HostPolicy | None = None, **options: Any) -> Application:
    """An ASGI application of a server object, to be mounted in another application or run by an ASGI server. ``policy``
    adds rules for hosts and origins to the runtime's own.
    """
    from mcpace.server.running.application import Application
    from mcpace.server.running.prepared import prepare

    return Application(lambda: prepare(server), _settings(transport, options), policy)


def _settings(transport: str, options: dict[str, Any]) -> Settings:
    from mcpace.server.running import settings

    given = dict(options)
    names = tuple(given)
    unknown = sorted(set(given) - settings.NAMES)
    if unknown:
        raise TypeError(f"a server can't be run with {', '.join(unknown)}: there is no such option")
    if given.get("workers", 1) > 1 or given.get("reload"):
        raise TypeError(
            "an object that is there already is served by this process: use mcpace serve for workers, reload"
        )
    if "log_level" in given:
        given["log_level"] = settings.log_level(str(given["log_level"]))
    for name in ("allowed_hosts", "allowed_origins"):
        given[name] = tuple(given.get(name, ()))
    return settings.Settings(transport=settings.transport(transport), given=names, **given)
