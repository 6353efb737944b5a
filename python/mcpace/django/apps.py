"""The app for ``INSTALLED_APPS``: it brings ``manage.py mcpace``, and checks the settings when Django starts."""

from __future__ import annotations

from django.apps import AppConfig


class McpaceConfig(AppConfig):
    """``"mcpace.django"`` in ``INSTALLED_APPS``."""

    name = "mcpace.django"
    label = "mcpace"
    verbose_name = "mcpace"

    def ready(self) -> None:
        """Raises ``ImproperlyConfigured`` for an unknown setting."""
        from mcpace.django.conf import check

        check()
