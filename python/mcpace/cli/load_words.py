"""The words of a load, from the command line or a scenario, and how they become settings.

Three steps: words are parsed where they come from into :class:`Asked`, in which ``None`` is what was not said; the
command line's go over the scenario's; what is left open or contradicts itself is settled once, in :func:`resolve`.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.cli.times import parsed
from mcpace.lab import load_replay, load_thresholds
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import read_text
from mcpace.lab.load_settings import (
    DEFAULT_DURATION_S,
    DEFAULT_TIMEOUT_S,
    DEFAULT_VUS,
    DEFAULT_WARM_UP_S,
    LoadSettings,
    Ramp,
)

MOST_CHOICES = 1_000_000
MOST_DATA = 64 * 1024 * 1024
"""Bytes of a file of choices."""
MOST_SEED = 2**64 - 1
OURS = {"content-type", "content-length", "host", "accept", "connection", "transfer-encoding"}
"""Headers that are the protocol's or the engine's."""


@dataclass(frozen=True)
class Asked:
    """What one source of words said."""

    target: str | None = None
    vus: int | None = None
    rate: float | None = None
    arrivals: str | None = None
    max_in_flight: int | None = None
    duration: float | None = None
    stages: tuple[Ramp, ...] | None = None
    warm_up: float | None = None
    think: float | None = None
    max_calls: int | None = None
    mix: tuple[tuple[str, float], ...] | None = None
    args: dict[str, dict[str, Any]] | None = None
    data: dict[str, list[str]] | None = None
    replay: Path | None = None
    session: str | None = None
    revision: str | None = None
    accept: str | None = None
    timeout: float | None = None
    threads: int | None = None
    cores: tuple[int, ...] | None = None
    seed: int | None = None
    header: tuple[tuple[str, str], ...] | None = None
    bearer: str | None = None
    auth: str | None = None
    threshold: tuple[str, ...] | None = None
    cacert: Path | None = None


EXCLUSIVE = (("vus", "rate"), ("duration", "stages"), ("mix", "replay"))
"""Where the command line says one of these, the scenario's others no longer stand."""


def over(strong: Asked, weak: Asked) -> Asked:
    """``strong``, and where it says nothing, ``weak``."""
    hidden = {name for group in EXCLUSIVE if any(getattr(strong, one) is not None for one in group) for name in group}
    if strong.vus is not None:
        hidden |= {"arrivals", "max_in_flight"}
    if strong.replay is not None:
        hidden |= {"args"}
    found: dict[str, Any] = {
        entry.name: getattr(weak, entry.name)
        for entry in fields(Asked)
        if getattr(strong, entry.name) is None and entry.name not in hidden
    }
    for name in {"args", "data"} - hidden:
        both = {**(getattr(weak, name) or {}), **(getattr(strong, name) or {})}
        found[name] = both or None
    return replace(strong, **found)


def resolve(asked: Asked, *, hold_s: float, faults: tuple[str, ...], notes: list[str]) -> LoadSettings:
    """Settings of what was asked for. ``notes`` are added to: what the user should know.

    Raises :class:`UsageProblem` where it contradicts itself.
    """
    _check(asked)
    replay = load_replay.read(asked.replay) if asked.replay is not None else None
    if replay and replay.cut:
        notes.append(f"{replay.cut} requests of {asked.replay} were not kept whole and are left out")
    if replay and replay.redacted:
        notes.append(f"{replay.redacted} requests of {asked.replay} hold redacted values, which are sent as they are")
    closed = asked.rate is None
    vus = (asked.vus if asked.vus is not None else 1 if asked.stages else DEFAULT_VUS) if closed else None
    return LoadSettings(
        vus=vus,
        rate=asked.rate,
        arrivals=_word("--arrivals", asked.arrivals, ("constant", "poisson")) or "constant",
        max_in_flight=asked.max_in_flight or 1000,
        duration_s=_given(asked.duration, DEFAULT_DURATION_S),
        stages=asked.stages or (),
        warm_up_s=_given(asked.warm_up, DEFAULT_WARM_UP_S),
        think_s=asked.think or 0.0,
        max_calls=asked.max_calls,
        mix=asked.mix or (),
        arguments=asked.args or {},
        data=asked.data or {},
        replay=replay.operations if replay else (),
        replay_file=asked.replay.name if asked.replay is not None else None,
        session=_word("--session", asked.session, ("user", "call", "none")),
        revision=asked.revision,
        accept=_word("--accept", asked.accept, ("both", "json", "sse")) or "both",
        timeout_s=_given(asked.timeout, DEFAULT_TIMEOUT_S),
        threads=asked.threads or max(1, len(asked.cores or ())),
        cores=asked.cores or (),
        seed=_given(asked.seed, 1),
        headers=asked.header or (),
        extra_root=asked.cacert,
        thresholds=tuple(load_thresholds.parse(text) for text in asked.threshold or ()),
        hold_s=hold_s,
        faults=faults,
    )


def token(variable: str) -> str:
    """``--bearer``: the token in an environment variable. What was given is never repeated: it may be the token itself.

    Raises :class:`UsageProblem` where there is no such variable.
    """
    value = os.environ.get(variable)
    if not value:
        raise UsageProblem(
            "--bearer takes the name of an environment variable that holds the token, and none of that name is set"
        )
    return value


# --- single words ---


def mix(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """``echo=3`` …; a bare tool's weight is 1."""
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


def arguments(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``TOOL={"text": "hi"}`` …"""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or name.lstrip().startswith("{"):
            raise UsageProblem('--args takes TOOL=JSON, as in --args \'echo={"text": "hi"}\'')
        try:
            value = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise UsageProblem(f"--args {name}: this is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise UsageProblem(f"--args {name}: a tool's arguments are a JSON object, not {type(value).__name__}")
        found[name] = value
    return found


def data(words: Sequence[str]) -> dict[str, list[str]]:
    """``NAME=FILE`` …: a choice a line."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or not name or not file:
            raise UsageProblem(f"--data {word!r}: write NAME=FILE; the file has a choice a line")
        found[name] = choices(name, Path(file))
    return found


def choices(name: str, file: Path) -> list[str]:
    """A file's lines, without the empty ones.

    Raises :class:`UsageProblem` where it has none or can't be read.
    """
    text = read_text(file, f"the data {name!r} from", MOST_DATA)
    return bounded(name, [line for line in text.splitlines() if line.strip()])


def bounded(name: str, found: list[str]) -> list[str]:
    """Choices that there are, and not too many.

    Raises :class:`UsageProblem` otherwise.
    """
    if not 1 <= len(found) <= MOST_CHOICES:
        raise UsageProblem(f"the data {name!r} must have from 1 to {MOST_CHOICES:,} choices, not {len(found):,}")
    return found


def stages(text: str) -> tuple[Ramp, ...]:
    """``10s:50,30s:200``: in 10 s to 50, in further 30 s to 200."""
    found = []
    for word in text.split(","):
        length, colon, to = word.strip().rpartition(":")
        try:
            stage = Ramp(parsed(length), float(to))
        except ValueError as error:
            raise UsageProblem(f"--stages {word.strip()!r}: write TIME:COUNT, as in 10s:50,30s:200") from error
        if not colon or not 0 <= stage.to < math.inf:
            raise UsageProblem(f"--stages {word.strip()!r}: write TIME:COUNT, as in 10s:50,30s:200")
        found.append(stage)
    return tuple(found)


def cores(text: str) -> tuple[int, ...]:
    """``0,2-3``."""
    found: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", word)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise UsageProblem(f"--cores {text!r}: write numbers of cores, as in 0,2-3")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(found)
    if strange := sorted(set(found) - usable):
        usual = ",".join(map(str, sorted(usable)))
        raise UsageProblem(f"--cores {text!r}: there is no core {strange[0]} for this process; it may use {usual}")
    return tuple(found)


def headers(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """``NAME: VALUE`` …; ``$VARIABLE`` in a value is the environment's. Values are never repeated in a message."""
    found = []
    for word in words:
        name, colon, value = word.partition(":")
        name = name.strip().lower()
        if not colon or re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name) is None:
            raise UsageProblem("--header takes NAME: VALUE, as in --header 'X-Api-Key: $KEY'")
        if name in OURS or name.startswith("mcp-"):
            raise UsageProblem(f"--header {name}: this header is the protocol's own and can't be replaced")
        value = os.path.expandvars(value.strip())
        if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in value):
            raise UsageProblem(f"--header {name}: its value has control characters, which no header can have")
        found.append((name, value))
    return tuple(found)


def _check(asked: Asked) -> None:
    for one, other, why in (
        ("vus", "rate", "--vus is a closed load, in which users wait for replies, and --rate an open one"),
        ("duration", "stages", "stages say how long the load takes, and so does --duration"),
        ("mix", "replay", "--replay sends a recording's requests, and --mix says others"),
        ("args", "replay", "--replay has its own arguments, and --args says others"),
    ):
        if getattr(asked, one) is not None and getattr(asked, other) is not None:
            raise UsageProblem(f"{why}: give one of the two")
    for option in ("arrivals", "max_in_flight"):
        if getattr(asked, option) is not None and asked.rate is None:
            raise UsageProblem(f"--{option.replace('_', '-')} is about an open load: give --rate too")
    if asked.rate is not None and not 0 < asked.rate < math.inf:
        raise UsageProblem(f"--rate takes calls a second, more than none, not {asked.rate:g}")
    if asked.seed is not None and not 0 <= asked.seed <= MOST_SEED:
        raise UsageProblem(f"--seed takes a number from 0 to {MOST_SEED}, not {asked.seed}")
    if asked.think and asked.rate is not None:
        raise UsageProblem("--think is a user's: in an open load --rate alone says when calls begin")
    if asked.bearer is not None and asked.auth not in (None, "bearer"):
        raise UsageProblem(f"--bearer and --auth {asked.auth} contradict each other: give one of the two")
    if asked.revision is not None and asked.revision not in _core.REVISIONS:
        raise UsageProblem(f"there is no revision {asked.revision!r}; there are {', '.join(_core.REVISIONS)}")


def _refuse(constant: str) -> None:
    raise ValueError(f"it has no {constant}")


def _word(option: str, word: str | None, known: tuple[str, ...]) -> Any:
    if word is not None and word not in known:
        raise UsageProblem(f"{option} takes {', '.join(known[:-1])} or {known[-1]}, not {word!r}")
    return word


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value
