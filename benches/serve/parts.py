"""The parts of the comparison: what each measures on which servers, its table and its checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import instructions
import memory
import payloads
import protocols
import python_face
import rates
import sessions
import starts
import table
import throughput
from subjects import Subject, build_mcpace

SESSIONS = 50_000


@dataclass(frozen=True)
class Settings:
    """Settings of one part's run."""

    chosen: list[Subject]
    rounds: int
    seconds: float
    folder: Path
    """Folder for files of the run."""


@dataclass(frozen=True)
class Part:
    """A part that can be measured by itself."""

    name: str
    title: str
    measure: Callable[[Settings], Any]
    checks: Callable[[Any], dict[str, Any]]
    markdown: Callable[[Any], str]
    builds: Sequence[Callable[[], None]] = ()
    """Builds beside those of the chosen servers."""
    servers: Callable[[Subject], bool] = lambda _: False
    """Whether a server of the comparison takes part."""
    rounds: int = 3
    seconds: float = 1.0


def is_one_of_each(subject: Subject) -> bool:
    """One row for each server: the JSON mode with one tool."""
    return subject.mode == "json" and subject.tools == 1


def is_measured_with_payloads(subject: Subject) -> bool:
    """Servers that return the text of a call. Only one of the slower ones, which take a long time."""
    left_out = ("floor", "nginx", "go-sdk", "typescript-sdk", "fastmcp", "mcpace-adopted")
    return is_one_of_each(subject) and subject.name not in left_out


def drawn(columns: Sequence[figures.Column]) -> Callable[[list[figures.Row]], str]:
    """The table of these columns."""
    return lambda rows: figures.markdown(rows, columns)


def rate_part(name: str, rate: int) -> Part:
    """Calls at a fixed rate."""
    return Part(
        name,
        f"{rate:,} calls a second, open loop",
        lambda given: rates.measure(given.chosen, rate, given.rounds, given.seconds),
        rates.checks,
        drawn(rates.COLUMNS),
        rates.BUILDS,
        lambda subject: subject.label in rates.LABELS,
        rounds=5,
        seconds=2.0,
    )


PARTS = (
    Part(
        "servers",
        "Throughput",
        lambda given: throughput.measure(given.chosen, given.rounds, given.seconds, given.folder),
        table.checks,
        table.markdown,
        servers=lambda _: True,
        rounds=4,
    ),
    rate_part("rates-10k", 10_000),
    rate_part("rates-50k", 50_000),
    Part(
        "starts",
        "Cold start",
        lambda given: starts.measure(given.chosen, given.rounds),
        starts.checks,
        drawn(starts.COLUMNS),
        starts.BUILDS,
        # Python writes nginx's configuration before it starts.
        lambda subject: is_one_of_each(subject) and subject.name != "nginx",
        rounds=5,
    ),
    Part(
        "memory",
        "Memory of connections and idle streams",
        lambda given: memory.measure(given.chosen),
        lambda _: {},
        drawn(memory.COLUMNS),
        memory.BUILDS,
        is_one_of_each,
        rounds=1,
    ),
    Part(
        "payloads",
        "Payloads, and a listing of 200 tools",
        lambda given: payloads.measure(given.chosen, given.rounds, given.seconds, given.folder),
        lambda _: {},
        drawn(payloads.COLUMNS),
        payloads.BUILDS,
        is_measured_with_payloads,
    ),
    Part(
        "protocols",
        "HTTP/2 and TLS",
        lambda given: protocols.measure(given.rounds, round(given.seconds), given.folder),
        lambda _: {},
        drawn(protocols.COLUMNS),
        protocols.BUILDS,
        seconds=2.0,
    ),
    Part(
        "instructions",
        "Instructions",
        lambda _: instructions.measure(),
        instructions.checks,
        drawn(instructions.COLUMNS),
        instructions.BUILDS,
        rounds=1,
    ),
    Part(
        "sessions",
        "Memory of idle sessions",
        lambda _: sessions.measure(SESSIONS),
        sessions.checks,
        lambda _: "",
        [build_mcpace],
        rounds=1,
    ),
    Part(
        "python-face",
        "The Python interface beside the official SDK",
        lambda given: python_face.measure(given.rounds, round(given.seconds)),
        python_face.checks,
        lambda _: "",
        python_face.BUILDS,
        seconds=3.0,
    ),
)
