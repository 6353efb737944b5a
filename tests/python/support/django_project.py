"""The example project (examples/django-invoices), set up in this process with its own database file.

Calls run on threads of the runtime, and each thread would have its own database in memory.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "django-invoices"
FOLDER = Path(tempfile.mkdtemp(prefix="mcpace-django-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
os.environ["SQLITE_FILE"] = str(FOLDER / "db.sqlite3")
os.environ["CONN_MAX_AGE"] = "0"
os.environ.pop("DATABASE_HOST", None)
sys.path.insert(0, str(EXAMPLE))

import django  # noqa: E402

django.setup()
# Known now; programs that tests start have a project of their own, or none.
del os.environ["DJANGO_SETTINGS_MODULE"]

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import override_settings  # noqa: E402

call_command("migrate", verbosity=0)
USER = get_user_model().objects.create_superuser("root", "root@shop.example", "secret")

from mcpace.django import AllowAny, MCPServer  # noqa: E402


def server(*, user: bool = True, **options: object) -> MCPServer:
    """A server that accepts every caller, as the superuser or as an anonymous user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MCPServer("shop", auth=AllowAny(user=(lambda: USER) if user else None), **options)


@contextlib.contextmanager
def setting(**given: object) -> Iterator[None]:
    """Changes settings of ``MCPACE`` during the ``with`` block."""
    from django.conf import settings

    with override_settings(MCPACE={**settings.MCPACE, **given}):
        yield
