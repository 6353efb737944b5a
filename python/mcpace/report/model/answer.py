"""The part of a Run that answers a question about many recordings, as a table of plain values.

Design constraint: data only. The name of a column says what its values are: those of ``…_ns`` are nanoseconds, and
those of ``…bytes`` are bytes. Words and headings are made in :mod:`mcpace.report.answer_tables`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mcpace.report.model.base import LARGEST, Model, Number

Question = Literal["latency", "slower", "findings", "dependencies", "sql", "recordings", "costs"]
"""``recordings`` and ``costs``: the recordings of an explained folder, and the findings of all of them."""
Cell = Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | Number | bool | str | None


class Answer(Model):
    """The answer to one question."""

    question: Question
    columns: list[str]
    rows: list[list[Cell]] = []
    """The most important row first. A row has a value for each column."""
    is_cut: bool = False
    """Whether there are more rows."""
    since: str = ""
    """Start of the time that the question is about (RFC 3339); empty for all of the tables."""
    confidence: Number | None = None
    """For ``slower``: the level of each interval."""


class UnreadRecording(Model):
    """A recording of a folder that could not be read."""

    name: str
    """Path below the folder."""
    reason: str
