"""Durations on the command line."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
LONGEST = timedelta(days=1).total_seconds()


def parse_seconds(text: str) -> float:
    """Parses a duration of an option: ``2s``, ``250ms``, ``1.5m``; a bare number is seconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def parse_duration(text: str) -> float:
    """Parses a duration outside of options, like :func:`parse_seconds`.

    Raises :class:`ValueError` with a message for the user.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", text.strip())
    unit = UNITS.get(match[2] or "s") if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is no length of time: write 2s, 250ms or 1.5m")
    value = float(match[1]) * unit
    if value > LONGEST:
        raise ValueError(f"{text!r} is longer than a day")
    return value
