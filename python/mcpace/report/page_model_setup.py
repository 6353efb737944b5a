"""What the page is handed of a run's set-up: names and what they are.

Design constraint: as in :mod:`mcpace.report.page_model`, which puts the page together.
"""

from __future__ import annotations

from mcpace.report.model import Model


class Fact(Model):
    """A name and what it is."""

    name: str
    value: str


class Packages(Model):
    """What a subject's environment held."""

    label: str
    packages: list[str]
