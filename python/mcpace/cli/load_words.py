"""Parsers of a load's arguments from the command line or a scenario: ``echo=3``, ``10s:50,30s:200``, ``0,2-3``.

No message repeats secrets such as header values and tokens.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpace.cli.times import parse_duration
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import read_text
from mcpace.lab.load.settings import Ramp
from mcpace.system.processors import usable_cores

MOST_CHOICES = 1_000_000
MOST_DATA = 64 * 1024 * 1024
"""Most bytes of a file of choices."""


def read_token(variable: str) -> str:
    """Reads the token for ``--bearer`` from an environment variable.

    Raises :class:`UsageProblem` where the variable isn't set. The message doesn't repeat the argument, which may be the
    token itself.
    """
    value = os.environ.get(variable)
    if not value:
        raise UsageProblem(
            "--bearer takes the name of an environment variable that holds the token, and none of that name is set"
        )
    return value


def parse_mix(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Parses ``echo=3`` …; a tool without a weight has weight 1."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, weight = word.rpartition("=")
        name, weight = (name, weight) if equals else (weight, "1")
        try:
            value = float(weight)
        except ValueError as error:
            raise UsageProblem(f"--mix {word!r}: the weight {weight!r} is no number; write TOOL=WEIGHT") from error
        if not name or not 0 < value < 1e9:
            raise UsageProblem(f"--mix {word!r}: write TOOL=WEIGHT with a weight above 0")
        if name in found:
            raise UsageProblem(f"--mix names {name!r} twice")
        found[name] = value
    return tuple(found.items())


def select_mix(tool: str | None, words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Converts ``--tool`` or ``--mix`` to a mix.

    Raises :class:`UsageProblem` where both are given.
    """
    if tool is None:
        return parse_mix(words)
    if words:
        raise UsageProblem("--tool and --mix name tools: give one of the two")
    return ((tool, 1.0),)


def parse_arguments(words: Sequence[str], tool: str | None = None) -> dict[str, dict[str, Any]]:
    """Parses ``TOOL={"text": "hi"}`` …; with a ``tool``, also ``{"text": "hi"}`` alone."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        if tool is not None and word.lstrip().startswith("{"):
            word = f"{tool}={word}"
        name, equals, text = word.partition("=")
        if not equals or not name or name.lstrip().startswith("{"):
            raise UsageProblem('--args takes TOOL=JSON, as in --args \'echo={"text": "hi"}\'')
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise UsageProblem(f"--args {name}: this is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise UsageProblem(f"--args {name}: a tool's arguments are a JSON object, not {type(value).__name__}")
        found[name] = value
    return found


def read_data(words: Sequence[str]) -> dict[str, list[str]]:
    """Parses ``NAME=FILE`` … and reads the files, which have one choice in each line."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or not name or not file:
            raise UsageProblem(f"--data {word!r}: write NAME=FILE; the file has a choice a line")
        found[name] = read_choices(name, Path(file))
    return found


def read_choices(name: str, file: Path) -> list[str]:
    """Reads the nonempty lines of a file.

    Raises :class:`UsageProblem` where the file has none or can't be read.
    """
    text = read_text(file, f"the data {name!r} from", MOST_DATA)
    return check_choices(name, [line for line in text.splitlines() if line.strip()])


def check_choices(name: str, found: list[str]) -> list[str]:
    """Returns the choices unchanged.

    Raises :class:`UsageProblem` where there are none or too many.
    """
    if not 1 <= len(found) <= MOST_CHOICES:
        raise UsageProblem(f"the data {name!r} must have from 1 to {MOST_CHOICES:,} choices, not {len(found):,}")
    return found


def parse_stages(text: str) -> tuple[Ramp, ...]:
    """Parses ``10s:50,30s:200``: in 10 s to 50, in further 30 s to 200."""
    found = []
    for word in text.split(","):
        length, colon, to = word.strip().rpartition(":")
        try:
            stage = Ramp(parse_duration(length), float(to))
        except ValueError as error:
            raise UsageProblem(f"--stages {word.strip()!r}: write TIME:COUNT, as in 10s:50,30s:200") from error
        if not colon or not 0 <= stage.to < math.inf:
            raise UsageProblem(f"--stages {word.strip()!r}: write TIME:COUNT, as in 10s:50,30s:200")
        found.append(stage)
    return tuple(found)


def parse_cores(text: str) -> tuple[int, ...]:
    """Parses a list of processors: ``0,2-3``."""
    found: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", word)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise UsageProblem(f"--cores {text!r}: write numbers of cores, as in 0,2-3")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    usable = usable_cores()
    if strange := sorted(set(found).difference(usable)):
        usual = ",".join(map(str, usable))
        raise UsageProblem(f"--cores {text!r}: there is no core {strange[0]} for this process; it may use {usual}")
    return tuple(found)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"it has no {constant}")
