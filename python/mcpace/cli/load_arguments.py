"""Arguments of a load from the command line and a scenario, and their conversion to settings.

In :class:`LoadArguments`, ``None`` means that the user gave no value. Values of the command line override those of the
scenario. :func:`resolve_arguments` fills in defaults and checks for contradictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpace.cli import options
from mcpace.lab.errors import UsageProblem
from mcpace.lab.load import replay as load_replay
from mcpace.lab.load import thresholds
from mcpace.lab.load.settings import (
    DEFAULT_DURATION_S,
    DEFAULT_TIMEOUT_S,
    DEFAULT_VUS,
    DEFAULT_WARM_UP_S,
    LoadSettings,
    Ramp,
)

if TYPE_CHECKING:
    from mcpace.lab.load.workers.places import WorkerPlace

MOST_SEED = 2**64 - 1


@dataclass(frozen=True)
class LoadArguments:
    """Arguments from the command line or from a scenario."""

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
    workers: tuple[str, ...] | None = None
    worker_command: str | None = None


EXCLUSIVE = (("vus", "rate"), ("duration", "stages"), ("mix", "replay"))
"""Groups of exclusive arguments: an argument of the command line removes the scenario's others of its group."""


def merge_arguments(strong: LoadArguments, weak: LoadArguments) -> LoadArguments:
    """Merges two sources: values of ``strong``, and those of ``weak`` where ``strong`` has none."""
    hidden = {name for group in EXCLUSIVE if any(getattr(strong, one) is not None for one in group) for name in group}
    if strong.vus is not None:
        hidden |= {"arrivals", "max_in_flight"}
    if strong.replay is not None:
        hidden |= {"args"}
    found: dict[str, Any] = {
        entry.name: getattr(weak, entry.name)
        for entry in fields(LoadArguments)
        if getattr(strong, entry.name) is None and entry.name not in hidden
    }
    for name in {"args", "data"} - hidden:
        both = {**(getattr(weak, name) or {}), **(getattr(strong, name) or {})}
        found[name] = both or None
    return replace(strong, **found)


def resolve_arguments(
    arguments: LoadArguments, *, hold_s: float, faults: tuple[str, ...], notes: list[str]
) -> LoadSettings:
    """Converts arguments to settings. Appends messages for the user to ``notes``.

    Raises :class:`UsageProblem` where arguments contradict each other.
    """
    _check_arguments(arguments)
    threads = arguments.threads or max(1, len(arguments.cores or ()))
    replay = load_replay.read_replay(arguments.replay) if arguments.replay is not None else None
    if replay and replay.cut:
        notes.append(f"{replay.cut} requests of {arguments.replay} were not kept whole and are left out")
    if replay and replay.redacted:
        notes.append(
            f"{replay.redacted} requests of {arguments.replay} hold redacted values, which are sent as they are"
        )
    closed = arguments.rate is None
    vus = (arguments.vus if arguments.vus is not None else 1 if arguments.stages else DEFAULT_VUS) if closed else None
    return LoadSettings(
        vus=vus,
        rate=arguments.rate,
        arrivals=_known_word("--arrivals", arguments.arrivals, ("constant", "poisson")) or "constant",
        max_in_flight=arguments.max_in_flight or 1000,
        duration_s=_or_default(arguments.duration, DEFAULT_DURATION_S),
        stages=arguments.stages or (),
        warm_up_s=_or_default(arguments.warm_up, DEFAULT_WARM_UP_S),
        think_s=arguments.think or 0.0,
        max_calls=arguments.max_calls,
        mix=arguments.mix or (),
        arguments=arguments.args or {},
        data=arguments.data or {},
        replay=replay.operations if replay else (),
        replay_file=arguments.replay.name if arguments.replay is not None else None,
        session=_known_word("--session", arguments.session, ("user", "call", "none")),
        revision=arguments.revision,
        accept=_known_word("--accept", arguments.accept, ("both", "json", "sse")) or "both",
        timeout_s=_or_default(arguments.timeout, DEFAULT_TIMEOUT_S),
        threads=threads,
        cores=arguments.cores or (),
        seed=_or_default(arguments.seed, 1),
        extra_root=arguments.cacert,
        thresholds=tuple(thresholds.parse_threshold(text) for text in arguments.threshold or ()),
        workers=_worker_places(arguments, threads),
        hold_s=hold_s,
        faults=faults,
    )


def _check_arguments(arguments: LoadArguments) -> None:
    for one, other, why in (
        ("vus", "rate", "--vus is a closed load, in which users wait for replies, and --rate an open one"),
        ("duration", "stages", "stages say how long the load takes, and so does --duration"),
        ("mix", "replay", "--replay sends a recording's requests, and --mix says others"),
        ("args", "replay", "--replay has its own arguments, and --args says others"),
    ):
        if getattr(arguments, one) is not None and getattr(arguments, other) is not None:
            raise UsageProblem(f"{why}: give one of the two")
    for option in ("arrivals", "max_in_flight"):
        if getattr(arguments, option) is not None and arguments.rate is None:
            raise UsageProblem(f"--{option.replace('_', '-')} is about an open load: give --rate too")
    if arguments.rate is not None and not 0 < arguments.rate < math.inf:
        raise UsageProblem(f"--rate takes calls a second, more than none, not {arguments.rate:g}")
    if arguments.seed is not None and not 0 <= arguments.seed <= MOST_SEED:
        raise UsageProblem(f"--seed takes a number from 0 to {MOST_SEED}, not {arguments.seed}")
    if arguments.think and arguments.rate is not None:
        raise UsageProblem("--think is a user's: in an open load --rate alone says when calls begin")
    if arguments.bearer is not None and arguments.auth not in (None, "bearer"):
        raise UsageProblem(f"--bearer and --auth {arguments.auth} contradict each other: give one of the two")
    options.checked_revision(arguments.revision)


def _worker_places(arguments: LoadArguments, threads: int) -> tuple[WorkerPlace, ...]:
    if arguments.workers is None and arguments.worker_command is None:
        return ()
    from mcpace.lab.load.workers.places import parse_workers

    return parse_workers(arguments.workers or (), arguments.worker_command, threads)


def _known_word(option: str, word: str | None, known: tuple[str, ...]) -> Any:
    if word is not None and word not in known:
        raise UsageProblem(f"{option} takes {', '.join(known[:-1])} or {known[-1]}, not {word!r}")
    return word


def _or_default(value: Any, default: Any) -> Any:
    return default if value is None else value
