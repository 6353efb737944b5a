"""Django's configuration of the app."""

from django.apps import AppConfig


class InvoicesConfig(AppConfig):
    """The app of invoices."""

    name = "invoices"
