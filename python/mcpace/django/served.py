"""A Django project's server for ``mcpace serve`` and its workers: ``mcpace serve mcpace.django.served:server``.

Design constraint: each process sets up Django before it imports the project's module.
"""

from __future__ import annotations

import os
from typing import Any

TARGET = "mcpace.django.served:server"
PLACE = "MCPACE_DJANGO_SERVER"
"""Environment variable that names the server as ``MODULE:SERVER``. It precedes the setting ``SERVER``."""


def server() -> Any:
    """The project's server."""
    import django

    django.setup()
    from mcpace.django.conf import setting
    from mcpace.server.running.errors import SetupProblem

    place = os.environ.get(PLACE) or setting("SERVER")
    if not place:
        raise SetupProblem("which server? Set MCPACE = {'SERVER': 'project.mcp:server'} in the project's settings")
    return load_server(place)


def load_server(place: str) -> Any:
    """The server object of ``MODULE:SERVER``. Raises :class:`mcpace.server.running.errors.RunProblem`."""
    from mcpace.server.running import loader

    return loader.load(loader.parse(place))
