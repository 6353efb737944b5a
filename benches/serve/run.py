"""Compares the runtime with its floor and with other SDKs, in parts that can be measured by themselves.

All servers of a part run for the whole time and are measured in turn, round after round, so that the machine's drift
hits all alike; figures are medians over rounds, ratios are taken within rounds. A run of whole parts also writes
them to `latest.json` and the tables of README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import table
from parts import PARTS, Part, Settings
from subjects import HERE, Missing, Subject, subjects, versions

LATEST = HERE / "latest.json"
TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)
Document = dict[str, Any]


def main() -> int:
    options = parse()
    parts, only = choose(options.only)
    if options.list:
        for part in parts:
            print(" ".join([part.name, *(subject.label for subject in servers(part, only))]))
        return 0
    # After a signal, the `with` blocks of the parts still end all started processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Servers start with compiled modules, as installed ones do: the first start writes them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    document: Document = {}
    try:
        for part in parts:
            try:
                document[part.name] = measure(part, servers(part, only), options)
            except Missing as missing:
                if len(parts) == 1:
                    raise
                say(f"{part.name} is left out: {missing}")
            else:
                if not only:
                    document = read() | document
                    write(document)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(markdown(document))
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = ", ".join(part.name for part in PARTS)
    only = f"measure these parts ({names}), or these servers and the floor; with servers, no file is written"
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], metavar="NAME[/MODE],…", help=only)
    parser.add_argument("--rounds", type=int, help="rounds over all servers (default: each part's own)")
    parser.add_argument("--seconds", type=float, help="length of each measurement (default: each part's own)")
    parser.add_argument("--list", action="store_true", help="say what would be measured, and end")
    return parser.parse_args()


def choose(only: list[str]) -> tuple[list[Part], set[str]]:
    """The parts and the servers that `--only` names; servers alone mean the first part."""
    names = {part.name for part in PARTS}
    known = {name for subject in subjects() for name in names_of(subject)}
    if unknown := set(only) - known - names:
        sys.exit(f"no such server or part: {', '.join(sorted(unknown))}; --list shows them")
    named = set(only) - names
    if not only:
        return list(PARTS), named
    return [part for part in PARTS if part.name in only] or [PARTS[0]], named


def servers(part: Part, only: set[str]) -> list[Subject]:
    """The servers of a part: all, or the floor, for the ratios, and the named ones."""
    return [
        subject
        for subject in subjects()
        if part.servers(subject) and (not only or {"floor", *only} & set(names_of(subject)))
    ]


def names_of(subject: Subject) -> list[str]:
    """Name, name and mode, and label."""
    return [subject.name, subject.label, *([f"{subject.name}/{subject.mode}"] if subject.tools == 1 else [])]


def measure(part: Part, chosen: list[Subject], options: argparse.Namespace) -> Document:
    """Builds and measures one part."""
    if shutil.which("wrk") is None:
        raise Missing("wrk is missing: apt install wrk")
    chosen = built(chosen)
    for build in part.builds:
        build()
    rounds, seconds = options.rounds or part.rounds, options.seconds or part.seconds
    load_before = os.getloadavg()[0]
    say(f"measuring: {part.name}")
    with tempfile.TemporaryDirectory() as folder:
        found = part.measure(Settings(chosen, rounds, seconds, Path(folder)))
    return {
        "figures": found,
        "conditions": {
            "rounds": rounds,
            "seconds": seconds,
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "load_average_before": load_before,
            "measured_at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            "versions": versions(),
        },
    }


def built(chosen: list[Subject]) -> list[Subject]:
    """The servers that could be built. Those whose tools are missing are left out, with a sentence."""
    missing: set[Callable[[], None]] = set()
    for build in dict.fromkeys(subject.built_by for subject in chosen):
        say(f"building: {build.__name__.removeprefix('build_')}")
        try:
            build()
        except Missing as error:
            if build is subjects()[0].built_by:
                raise
            say(str(error))
            missing.add(build)
    return [subject for subject in chosen if subject.built_by not in missing]


def markdown(document: Document) -> str:
    """The tables, the checks and the versions."""
    texts, checks = [], {}
    for part in PARTS:
        if (taken := document.get(part.name)) is None:
            continue
        checks |= part.checks(taken["figures"])
        if text := part.markdown(taken["figures"]):
            texts.append(f"### {part.title}\n\n{note(taken['conditions'])}\n\n{text}")
    if checks:
        texts.append(f"### Targets\n\n{table.markdown_checks(checks)}")
    newest = max((taken["conditions"] for taken in document.values()), key=lambda at: at["measured_at"])
    named = ", ".join(f"{name} {version}" for name, version in newest["versions"].items())
    return "\n".join([*texts, f"Versions: {named}.\n"])


def note(at: dict[str, Any]) -> str:
    """Circumstances of a measurement."""
    return (
        f"{at['measured_at']}, mcpace {at['versions']['mcpace']}, {at['rounds']} rounds of {at['seconds']:g} s. "
        f"Load average {at['load_average_before']:.1f} before."
    )


def read() -> Document:
    """The parts of earlier runs."""
    found: Document = json.loads(LATEST.read_text())
    return found


def write(document: Document) -> None:
    """Writes the figures as JSON and the tables as Markdown."""
    LATEST.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    readme = HERE / "README.md"
    text = markdown(document)
    readme.write_text(TABLE.sub(lambda found: found[1] + text + found[2], readme.read_text()))


def say(text: str) -> None:
    """Prints the progress on stderr, because stdout has the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
