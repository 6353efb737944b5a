"""Scenarios: the options of ``mcpace load`` in a TOML file, with equal names.

Paths are relative to the file's folder. An unknown key or a value of a wrong type is refused, with its line.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mcpace.cli import load_words
from mcpace.cli.load_arguments import LoadArguments
from mcpace.cli.times import parse_duration
from mcpace.lab.errors import UsageProblem, nearest_names, suggestion
from mcpace.lab.files import read_text
from mcpace.lab.headers import parse_headers


class Scenario(BaseModel):
    """The file's keys."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-"))

    target: str | None = None
    vus: int | None = None
    rate: float | None = None
    arrivals: str | None = None
    max_in_flight: int | None = None
    duration: str | float | None = None
    stages: str | list[str] | None = None
    warm_up: str | float | None = None
    think: str | float | None = None
    max_calls: int | None = None
    mix: dict[str, float] | None = None
    args: dict[str, dict[str, Any]] | None = None
    data: dict[str, str | list[str]] | None = None
    replay: str | None = None
    session: str | None = None
    revision: str | None = None
    accept: str | None = None
    timeout: str | float | None = None
    threads: int | None = None
    cores: str | None = None
    seed: int | None = None
    header: list[str] | None = None
    bearer: str | None = None
    auth: str | None = None
    threshold: list[str] | None = None
    cacert: str | None = None
    workers: list[str] | None = None
    worker_command: str | None = None


MOST_SCENARIO = 64 * 1024 * 1024
"""Most bytes of a scenario, which may contain data."""
TIMES = ("duration", "warm_up", "think", "timeout")
LEAST = {"vus": 1, "max_in_flight": 1, "max_calls": 1, "threads": 1, "seed": 0}


def read_scenario(path: Path) -> LoadArguments:
    """Reads a scenario.

    Raises :class:`UsageProblem` for an invalid scenario, with the file and, where known, the line.
    """
    text = read_text(path, "the scenario", MOST_SCENARIO)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageProblem(f"{path} is not TOML: {error}") from error
    try:
        found = Scenario.model_validate(document)
    except ValidationError as error:
        raise UsageProblem(_error_message(error, path, text)) from error
    values = found.model_dump(exclude_none=True)
    for name, value in values.items():
        try:
            values[name] = _checked_value(name, value, path.parent)
        except (UsageProblem, ValueError) as error:
            raise UsageProblem(f"{_key_place(path, text, name)}: {error}") from error
    return LoadArguments(**values)


def _checked_value(name: str, value: Any, folder: Path) -> Any:
    if name in TIMES:
        return parse_duration(str(value))
    if name in LEAST and value < LEAST[name]:
        raise ValueError(f"{name.replace('_', '-')} must be at least {LEAST[name]}")
    match name:
        case "stages":
            return load_words.parse_stages(value if isinstance(value, str) else ",".join(value))
        case "mix":
            return load_words.parse_mix([f"{tool}={weight}" for tool, weight in value.items()])
        case "data":
            return {
                own: load_words.read_choices(own, folder / given)
                if isinstance(given, str)
                else load_words.check_choices(own, given)
                for own, given in value.items()
            }
        case "args":
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise UsageProblem(f"arguments are JSON, which has no dates, nan or inf: {error}") from error
            return value
        case "cores":
            return load_words.parse_cores(value)
        case "header":
            return parse_headers(value)
        case "threshold" | "workers":
            return tuple(value)
        case "replay" | "cacert":
            return folder / value
        case _:
            return value


def _error_message(error: ValidationError, path: Path, text: str) -> str:
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0])
    place = _key_place(path, text, key)
    if first["type"] == "extra_forbidden":
        known = sorted(name.replace("_", "-") for name in Scenario.model_fields)
        return f"{place}: a scenario has no key {key!r}{suggestion(nearest_names(key, known), known)}"
    where = ".".join(str(part) for part in first["loc"] if part not in ("str", "float", "list[str]"))
    return f"{place}: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _key_place(path: Path, text: str, name: str) -> str:
    """``FILE:LINE`` of a key; only the file where the line isn't found."""
    key = re.escape(name.replace("_", "-"))
    pattern = re.compile(rf"""^\s*(\[\s*)?["']?{key}["']?\s*[=\].]""")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.match(line):
            return f"{path}:{number}"
    return str(path)
