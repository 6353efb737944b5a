"""Durations, ages and moments on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
AGES = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
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


def parse_age(text: str) -> timedelta:
    """Parses an age: ``30m``, ``24h``, ``7d``, ``2w``.

    Raises :class:`ValueError` with a message for the user.
    """
    match = re.fullmatch(r"(\d{1,6})(m|h|d|w)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no age: write 24h, 7d or 2w")
    return int(match[1]) * AGES[match[2]]


def parse_moment(text: str, now: datetime) -> datetime:
    """Parses a moment: an age before ``now``, or a date or time of ISO 8601, in UTC unless it names another zone.

    Raises :class:`ValueError` with a message for the user.
    """
    is_age = re.fullmatch(r"\d+[a-z]", text.strip())
    age = parse_age(text) if is_age else timedelta()
    try:
        if is_age:
            return now - age
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no time: write 7d, 24h, 2026-11-20 or 2026-11-20T14:30") from error
