"""The app for ``INSTALLED_APPS``: it brings ``manage.py mcpace``, and checks the settings when Django starts."""

from __future__ import annotations

from django.apps import AppConfig


class McpaceConfig(AppConfig):
    """``"mcpace.django"`` in ``INSTALLED_APPS``."""

    name = "mcpace.django"
    label = "mcpace"
    verbose_name = "mcpace"

    def ready(self) -> None:
        """Raises ``ImproperlyConfigured`` for a setting that there is none of."""
        from mcpace.django.conf import check

        check()
