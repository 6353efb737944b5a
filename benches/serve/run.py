"""Compares the runtime with its floor and with other SDKs: wrk, one thread, 50 kept-alive connections, echo tool.

Every server runs for the whole time and is measured in turn, round after round, so that the machine's drift hits all
alike; figures are medians over rounds, ratios are taken within rounds. A run of everything also writes `latest.json`
and the table of README.md beside this file.
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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import call
import load
import python_face
import sessions
import table
from process import Process
from subjects import HERE, Missing, Subject, build_mcpace, subjects, versions

CONNECTIONS = 50
SESSIONS = 50_000
SESSIONS_LABEL = "sessions"
FACE_LABEL = "python-face"
TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)


def main() -> int:
    options = parse()
    chosen = choose(options.only)
    with_sessions = not options.only or SESSIONS_LABEL in options.only
    with_face = not options.only or FACE_LABEL in options.only
    if options.list:
        print(
            "\n".join(
                [subject.label for subject in chosen] + [SESSIONS_LABEL] * with_sessions + [FACE_LABEL] * with_face
            )
        )
        return 0
    # After a signal, the `with` blocks below still end all started processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        document = measure(chosen, with_sessions, with_face, options)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    text = table.markdown(
        document["rows"] + document["more_rows"], document["checks"], document["versions"], note(document)
    )
    print(text)
    if not options.only:
        write(document, text)
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    only = "measure these and the floor; `sessions`: memory of idle ones; `python-face`: more of it; writes no files"
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], metavar="NAME[/MODE],…", help=only)
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all servers (default: 3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of each measurement (default: 3)")
    parser.add_argument("--list", action="store_true", help="say what would be measured, and end")
    return parser.parse_args()


def choose(only: list[str]) -> list[Subject]:
    """The servers that `--only` names by name, name and mode, or label, and always the floor, for the ratios."""
    every = subjects()
    known = {SESSIONS_LABEL, FACE_LABEL, *(part for s in every for part in (s.name, f"{s.name}/{s.mode}", s.label))}
    if unknown := set(only) - known:
        sys.exit(f"no such server: {', '.join(sorted(unknown))}; --list shows them")
    if not only:
        return every
    if set(only) <= {SESSIONS_LABEL, FACE_LABEL}:
        return []
    wanted = {"floor", *only}
    return [
        s for s in every if s.name in wanted or s.label in wanted or (s.tools == 1 and f"{s.name}/{s.mode}" in wanted)
    ]


def measure(chosen: list[Subject], with_sessions: bool, with_face: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Builds, starts, checks and measures."""
    if (chosen or with_face) and shutil.which("wrk") is None:
        raise Missing("wrk is missing: apt install wrk")
    builds = [*(subject.built_by for subject in chosen), *[build_mcpace] * with_sessions]
    for build in dict.fromkeys([*builds, *python_face.BUILDS * with_face]):
        say(f"building: {build.__name__.removeprefix('build_')}")
        build()
    load_before = os.getloadavg()[0]
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory()))
        running = [
            (subject, started.enter_context(Process(subject.command, subject.environment))) for subject in chosen
        ]
        for subject, server in running:
            server.wait_until_it_listens()
            for revision in subject.revisions:
                try:
                    call.check(server.port, the_call(subject, revision), subject.mode)
                except (RuntimeError, OSError, ValueError) as error:
                    raise RuntimeError(f"{subject.label}, {revision}: {error}") from error
        rows = measure_rounds(running, options, folder)
    table.add_ratios(rows)
    memory = None
    if with_sessions:
        say(f"{SESSIONS} idle sessions")
        memory = sessions.measure(SESSIONS)
    face = None
    if with_face:
        say("the Python face, beside the official SDK")
        face = python_face.measure(options.rounds, options.seconds)
    return {
        "rows": [row for row in rows if row["tools"] == 1],
        "more_rows": [row for row in rows if row["tools"] != 1],
        "checks": table.checks(rows, memory) | (python_face.checks(face) if face else {}),
        "idle_sessions": memory,
        "python_face": face,
        "versions": versions(),
        "conditions": {
            "connections": CONNECTIONS,
            "rounds": options.rounds,
            "seconds": options.seconds,
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "load_average_before": load_before,
            "load_average_after": os.getloadavg()[0],
            "measured_at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        },
    }


def measure_rounds(
    running: list[tuple[Subject, Process]], options: argparse.Namespace, folder: Path
) -> list[table.Row]:
    """One row for each server and revision."""
    cases = [(subject, revision, server) for subject, server in running for revision in subject.revisions]
    for subject, revision, server in cases:
        say(f"warming up: {subject.label}, {revision}")
        load.measure(server.port, the_call(subject, revision), 1, CONNECTIONS, folder)
    rounds: list[list[tuple[load.Figures, float, int]]] = [[] for _ in cases]
    for number in range(1, options.rounds + 1):
        for case, (subject, revision, server) in zip(rounds, cases, strict=True):
            before = server.cpu_s()
            figures = load.measure(server.port, the_call(subject, revision), options.seconds, CONNECTIONS, folder)
            case.append((figures, server.cpu_s() - before, server.rss_bytes()))
            say(f"round {number}: {subject.label}, {revision}: {figures.rps:,.0f} requests/s")
    # Over a single connection no call queues, so that a stall is clearly visible.
    alone = [
        load.measure(server.port, the_call(subject, revision), 1, 1, folder) for subject, revision, server in cases
    ]
    return [
        table.row(subject.name, subject.mode, revision, subject.tools, case, one)
        for (subject, revision, _), case, one in zip(cases, rounds, alone, strict=True)
    ]


def the_call(subject: Subject, revision: str) -> call.Call:
    """The echo call, as the generator makes it to this server."""
    return call.Call(revision, events_only=subject.events_only)


def note(document: dict[str, Any]) -> str:
    """Circumstances of the measurement."""
    at = document["conditions"]
    rounds = next((row["rounds_rps"] for row in document["rows"] if row["name"] == "floor"), None)
    spread = (
        f"The floor's own rounds lie between {min(rounds):,.0f} and {max(rounds):,.0f} requests/s. " if rounds else ""
    )
    return (
        f"{at['measured_at']}, {at['cores']} cores ({at['architecture']}) shared by servers and generator, "
        f"{at['seconds']} s in each of {at['rounds']} rounds. Load average {at['load_average_before']:.1f} before: "
        "where that is not near 0, the machine had other work, too. "
        f"{spread}Only ratios within this run mean anything."
    )


def write(document: dict[str, Any], text: str) -> None:
    """Writes the figures as JSON and the table as Markdown."""
    (HERE / "latest.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    readme = HERE / "README.md"
    readme.write_text(TABLE.sub(lambda found: found[1] + text + found[2], readme.read_text()))


def say(text: str) -> None:
    """Prints the progress on stderr, because stdout has the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
