"""Measures one server object in one way: its processes, and the transcripts of its runs."""

from __future__ import annotations

import itertools
import os
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare import Documented, Spot, differences
from corpora import Corpus, import_roots
from hosting import Host, Process
from probes import Step, Transcript, run
from wire import Http, Stdio

START_LIMIT_S = 20.0
ORIGINAL, SWAPPED, ADOPTED = "original", "swapped", "adopted"
STDIO, HTTP = "stdio", "http"
SAME, TOLD, DIFFERENT, REFUSED, CRASHED, LEFT = "same", "documented", "different", "refused", "crashed", "not swapped"
REFUSALS = re.compile(
    r"UnsupportedOption|RegistrationError|^mcpace: "
    r"|mcpace\.server\.errors\.InvalidSignature: .*Instead"
    r"|^AttributeError: .*mcpace serve",
    re.MULTILINE,
)
"""Pattern of errors that name a replacement."""
NOT_SWAPPED = 71

_ports = itertools.count(os.getpid() * 997)
"""First port, which differs between concurrent harnesses."""


@dataclass(frozen=True)
class Subject:
    """A server object of a corpus."""

    corpus: Corpus
    file: Path
    name: str
    kind: str
    path: str

    @property
    def label(self) -> str:
        return f"{self.file}:{self.name}"


@dataclass
class Runs:
    """The transcripts of one object in one way, by transport and revision."""

    transcripts: dict[str, Transcript] = field(default_factory=dict)
    failure: str = ""
    """Standard error of a server that did not start."""
    status: int | None = None


@dataclass
class Outcome:
    """One object in one way, compared with the original."""

    verdict: str
    spots: list[tuple[str, Spot, str]] = field(default_factory=list)
    """The run, the spot, and the name of the documented difference that covers it, or nothing."""
    failure: str = ""
    unsteady: int = 0
    """Places that differed in the first runs, and changed in a later run of one server."""

    def to_json(self) -> dict[str, Any]:
        shown = [{"run": run, **spot.to_json(), "documented": name} for run, spot, name in self.spots]
        return {"verdict": self.verdict, "failure": self.failure, "unsteady": self.unsteady, "spots": shown}


def measure(host: Host, subject: Subject, way: str, runs: list[tuple[str, str]], steps: dict[str, list[Step]]) -> Runs:
    """Runs an object. `steps` contains the requests of each run; a run of the original fills it."""
    over_stdio = [revision for transport, revision in runs if transport == STDIO]
    over_http = [revision for transport, revision in runs if transport == HTTP]
    done = Runs()
    # The processes run at once, because servers and clients mostly wait.
    with ThreadPoolExecutor(len(over_stdio) + 1) as pool:
        parts = [pool.submit(_over_stdio, host, subject, way, revision, steps) for revision in over_stdio]
        if over_http:
            parts.append(pool.submit(_over_http, host, subject, way, over_http, steps))
    for part in (future.result() for future in parts):
        done.transcripts |= part.transcripts
        if part.failure or part.status is not None:
            done.failure, done.status = part.failure, part.status
    return done


def _over_stdio(host: Host, subject: Subject, way: str, revision: str, steps: dict[str, list[Step]]) -> Runs:
    done = Runs()
    with host.running(_task(subject, way, STDIO, 0)) as process:
        _one(done, STDIO, revision, Stdio(revision, process.stdin, process.stdout), steps, process)
    return done


def _over_http(host: Host, subject: Subject, way: str, revisions: list[str], steps: dict[str, list[Step]]) -> Runs:
    """One process answers all revisions, one after another."""
    done = Runs()
    port = _free_port()
    with host.running(_task(subject, way, HTTP, port)) as process:
        listens = _listens(process, port)
        for revision in revisions:
            if listens:
                _one(done, HTTP, revision, Http(revision, port, subject.path), steps, process)
            else:
                process.ended.wait(0.2)
                done.failure, done.status = process.stderr(), process.status
                done.transcripts[f"{HTTP} {revision}"] = Transcript(end="the server did not start")
    return done


def _one(done: Runs, transport: str, revision: str, peer: Any, steps: dict[str, list[Step]], process: Process) -> None:
    key = f"{transport} {revision}"
    transcript = run(peer, steps.get(key), START_LIMIT_S)
    if transcript.end is not None and not transcript.answers:
        process.ended.wait(2)
        done.failure, done.status = process.stderr(), process.status
        transcript.end = "the server did not start"
    steps.setdefault(key, transcript.steps)
    done.transcripts[key] = transcript


def judge(way: str, subject: Subject, originals: list[Runs], others: list[Runs], known: list[Documented]) -> Outcome:
    """Compares the first runs of the original and of the other server. Later runs show the values that change by
    themselves.

    A place counts if it is equal in all runs of the original and differs from it in all runs of the other server. A
    place that changes by itself over one transport or in one revision does not count in the others.
    """
    original, other = originals[0], others[0]
    if other.status == NOT_SWAPPED:
        return Outcome(LEFT)
    found: list[tuple[str, Spot, str]] = []
    spots = {key: differences(transcript, other.transcripts[key]) for key, transcript in original.transcripts.items()}
    moving: set[Any] = set()
    for key, transcript in original.transcripts.items():
        for runs in originals[1:]:
            moving |= {spot.place for spot in differences(transcript, runs.transcripts[key])}
        for runs in others[1:]:
            moving |= {spot.place for spot in spots[key]} - {
                spot.place for spot in differences(transcript, runs.transcripts[key])
            }
    unsteady = 0
    for key in original.transcripts:
        for spot in spots[key]:
            if spot.place in moving:
                unsteady += 1
                continue
            line = subject.corpus.line.name
            name = next((one.name for one in known if one.covers(way, line, subject.label, key, spot)), "")
            found.append((key, spot, name))
    if other.failure and not original.failure:
        return Outcome(REFUSED if REFUSALS.search(other.failure) else CRASHED, found, other.failure, unsteady)
    if any(not name for _, _, name in found):
        return Outcome(DIFFERENT, found, unsteady=unsteady)
    return Outcome(TOLD if found else SAME, found, unsteady=unsteady)


def runs_of(subject: Subject, transports: list[str], revisions: list[str]) -> list[tuple[str, str]]:
    """The runs that an object's SDK supports."""
    spoken = [one for one in revisions if one in subject.corpus.line.revisions]
    return [(transport, revision) for transport in transports for revision in spoken]


def _task(subject: Subject, way: str, transport: str, port: int) -> dict[str, Any]:
    tree = subject.corpus.swapped if way == SWAPPED else subject.corpus.original
    return {
        "do": "adopt" if way == ADOPTED else "serve",
        "way": way,
        "file": str(tree / subject.file),
        "object": subject.name,
        "transport": transport,
        "port": port,
        "paths": import_roots(tree, subject.file),
    }


def _free_port() -> int:
    # Below the system's ephemeral ports, and each port once, so that no process takes it between the check and its use.
    while True:
        port = 20_000 + next(_ports) % 12_000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _listens(process: Process, port: int) -> bool:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and not process.ended.is_set():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            process.ended.wait(0.02)
    return False
