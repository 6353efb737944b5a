"""The app."""

from django.apps import AppConfig


class InvoicesConfig(AppConfig):
    """Invoices."""

    name = "invoices"
