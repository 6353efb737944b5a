"""``mcpace load --manifest kubernetes``: prints the objects of a load in a cluster, and makes no load.

The command line becomes the arguments of the driver's container. Files that it names become a ConfigMap, and variables
of the environment become references to a Secret, so that no value of them is printed.
"""

from __future__ import annotations

import ipaddress
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from mcpace import __version__
from mcpace.cli.notes import inform
from mcpace.lab.errors import UsageProblem
from mcpace.lab.headers import VARIABLE
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.load.workers.kubernetes import (
    DEFAULT_NAME,
    FILES_FOLDER,
    MOST_FILE_BYTES,
    KubernetesLoad,
    credentials_name,
    kubernetes_objects,
)
from mcpace.lab.load.workers.places import PodPlace
from mcpace.lab.targets import Target

IMAGE = f"ghcr.io/mcpace/mcpace:{__version__}"
OWN = {"manifest", "image", "workers", "target"}
"""Options that have no place in the driver's command, or another one."""
OUTPUTS = {"out", "html", "prometheus"}
ELSEWHERE = {"config", "python", "worker_command", "auth"}
"""Options that refer to this machine."""
FILE_OPTIONS = {"scenario", "replay", "cacert"}
SCENARIO_FILES = ("replay", "cacert")


def stand_in_variables(headers: Sequence[str], bearer: str | None, scenario: Path | None) -> list[str]:
    """The variables that the load refers to. Each has a value afterwards: the cluster has the true ones."""
    own = _read_toml(scenario) if scenario is not None else {}
    words = [*headers, *(word for word in own.get("header", []) if isinstance(word, str))]
    names = [match["braced"] or match["bare"] for word in words for match in VARIABLE.finditer(word)]
    token = bearer or own.get("bearer")
    names += [token] if isinstance(token, str) else []
    for name in names:
        os.environ.setdefault(name, "value")
    return sorted(set(names))


def print_manifest(context: typer.Context, target: Target, settings: LoadSettings, variables: Sequence[str]) -> None:
    """Prints the manifest on stdout, and the next steps on stderr."""
    kind, _, name = context.params["manifest"].partition(":")
    if kind != "kubernetes":
        raise UsageProblem(f"--manifest takes kubernetes or kubernetes:NAME, not {context.params['manifest']!r}")
    if not settings.workers or not all(isinstance(place, PodPlace) for place in settings.workers):
        raise UsageProblem("--manifest needs the number of workers: give --workers pods:N, and no others")
    if target.url is None:
        raise UsageProblem(f"{target.name} is no URL: the pods of a manifest reach a target by its URL only")
    files: dict[str, bytes] = {}
    command = ["load", *_driver_words(context, files)]
    if context.params["target"] is not None:
        command.append(context.params["target"])
    length_s = sum(stage.duration_s for stage in settings.stages) or settings.duration_s
    load = KubernetesLoad(
        name=name or DEFAULT_NAME,
        image=context.params["image"] or IMAGE,
        workers=len(settings.workers),
        threads=settings.threads,
        command=command,
        planned_s=settings.warm_up_s + length_s,
        variables=variables,
        files=files,
    )
    for number, resource in enumerate(kubernetes_objects(load)):
        typer.echo(("---\n" if number else "") + "\n".join(yaml_lines(resource)))
    _inform_next_steps(load, target.url)


def _inform_next_steps(load: KubernetesLoad, url: str) -> None:
    inform(f"the manifest has the token of the workers. Results: kubectl logs --follow job/{load.name}-driver")
    if load.variables:
        literals = " ".join(f'--from-literal={name}="${name}"' for name in load.variables)
        inform(f"first: kubectl create secret generic {credentials_name(load)} {literals}")
    if _is_loopback(urlsplit(url).hostname or ""):
        inform(f"{url} is on loopback: each pod would call itself")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _driver_words(context: typer.Context, files: dict[str, bytes]) -> Iterator[str]:
    """The options of the command line as words. Puts the files that they name into ``files``."""
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if param.name in OWN or source is None or source.name == "DEFAULT" or param.name not in context.params:
            continue
        option, value = param.opts[0], context.params[param.name]
        if param.name in OUTPUTS:
            raise UsageProblem(f"--manifest: a file of {option} is lost with its pod: use --json and the pod's log")
        if param.name in ELSEWHERE:
            raise UsageProblem(f"--manifest: {option} is about this machine: leave it out")
        if isinstance(value, bool):
            yield option if value else param.secondary_opts[0]
            continue
        for one in value if isinstance(value, list) else [value]:
            yield f"{option}={_word(param.name, one, files)}"


def _word(name: str, value: Any, files: dict[str, bytes]) -> str:
    if name in FILE_OPTIONS:
        if name == "scenario":
            _check_scenario(value)
        return _add_file(files, name, Path(value))
    if name == "data":
        own, _, file = value.partition("=")
        return f"{own}={_add_file(files, 'data', Path(file))}"
    if isinstance(value, float):
        # Times have become seconds, and a bare number is seconds.
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value)


def _add_file(files: dict[str, bytes], name: str, path: Path) -> str:
    key = f"{name}-{len(files)}{path.suffix if path.suffix.isascii() and path.suffix[1:].isalnum() else ''}"
    try:
        with path.open("rb") as file:
            files[key] = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageProblem(f"cannot read {path}: {error.strerror}") from error
    return f"{FILES_FOLDER}/{key}"


def _check_scenario(path: Path) -> None:
    own = _read_toml(path)
    named = [key for key in SCENARIO_FILES if key in own]
    named += [f"data.{key}" for key, value in own.get("data", {}).items() if isinstance(value, str)]
    if named:
        raise UsageProblem(
            f"--manifest: {path} names a file for {named[0]}, which a pod has not: give it on the command line"
        )


def _read_toml(path: Path) -> dict[str, Any]:
    """A scenario as it is written; empty where it can't be read, which its parser reports."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """A mapping as YAML in blocks. Scalars are written as JSON, which is YAML."""
    for key, one in value.items():
        head = f"{indent}{key}:"
        if isinstance(one, dict) and one:
            yield head
            yield from yaml_lines(one, indent + "  ")
        elif isinstance(one, list) and one and isinstance(one[0], dict):
            yield head
            for item in one:
                first, *rest = yaml_lines(item, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        elif isinstance(one, list) and one:
            yield head
            yield from (f"{indent}  - {json.dumps(item)}" for item in one)
        else:
            yield f"{head} {json.dumps(one)}"
