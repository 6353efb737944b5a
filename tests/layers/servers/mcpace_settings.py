"""The project of ``drf_settings``, with ``manage.py mcpace``."""

import drf_settings
from drf_settings import *  # noqa: F403

INSTALLED_APPS = [*drf_settings.INSTALLED_APPS, "mcpace.django"]
ROOT_URLCONF = "mcpace_settings"
urlpatterns: list[object] = []
