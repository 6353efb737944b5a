"""`make compat`: runs third-party servers unchanged, with swapped imports, and adopted, and compares their answers.

Usage: run.py [--line mcp-2]… [--folder mcp-2=CHECKOUT]… [--only TEXT] [--way adopted]… [--out FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compare import Documented, documented
from corpora import LEGACY, LINES, MODERN, Corpus, environment, gather, import_roots, sdist
from hosting import ROOT, Host
from measuring import (
    ADOPTED,
    CRASHED,
    DIFFERENT,
    HTTP,
    LEFT,
    ORIGINAL,
    STDIO,
    SWAPPED,
    Outcome,
    Subject,
    judge,
    measure,
    runs_of,
)
from table import judged_again, stale, summary

WAYS = (SWAPPED, ADOPTED)
SAVED_EVERY = 20
REPEATED = 4
"""Further runs of the original and of the other server, which show the values that change by themselves."""
REPEAT_LIMIT_S = 240
"""Time after which no further run begins, except for the first."""


def main() -> int:
    asked = _arguments()
    cache: Path = asked.cache.absolute()
    known = documented()
    report: dict[str, Any] = {}
    if asked.saved is not None:
        report = judged_again(json.loads(asked.saved.read_text()), known)
        save(report, asked.out)
    for name in [] if asked.saved is not None else asked.line or LINES:
        line = LINES[name]
        python = environment(line, cache)
        folders = [Path(one.partition("=")[2]) for one in asked.folder if one.partition("=")[0] == name]
        if asked.own:
            folders += [folder for folder in own_folders(name) if folder.is_dir()]
        trees = cache / ("own" if asked.own else "trees")
        corpus = prepare(name, folders or [sdist(line, cache)], trees)
        with contextlib.closing(Host(python, name)) as host:
            measure_corpus(host, corpus, asked, known, report)
    print(summary(report))
    is_whole = (
        asked.saved is None
        and asked.every == 1
        and asked.seconds == float("inf")
        and not (asked.own or asked.only or asked.way or asked.folder or asked.transport or asked.revision)
    )
    old = stale(report, known) if is_whole else []
    for entry in old:
        print(f"stale: {entry} is in differences.toml, and was not seen")
    verdicts = [told["verdict"] for line in report.values() for one in line["objects"] for told in one["ways"].values()]
    return 1 if old or {DIFFERENT, CRASHED} & set(verdicts) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line", action="append", choices=list(LINES))
    parser.add_argument("--folder", action="append", default=[], metavar="LINE=FOLDER")
    parser.add_argument("--saved", type=Path, metavar="FILE", help="judge a saved compat.json by the list of today")
    parser.add_argument("--only", default="", help="objects whose label has this text")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one file in N, for a quick look")
    parser.add_argument(
        "--own", action="store_true", help="our own servers (tests/adopt/servers, tests/compat/servers)"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no object after this time")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--transport", action="append", choices=[STDIO, HTTP])
    parser.add_argument("--revision", action="append", choices=[*LEGACY, MODERN])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=ROOT / "target" / "compat")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "compat" / "out")
    return parser.parse_args()


def prepare(name: str, sources: list[Path], trees: Path) -> Corpus:
    """The two trees of a line: the unchanged code and the migrated code."""
    original, swapped = trees / name / "original", trees / name / "swapped"
    shutil.rmtree(original, ignore_errors=True)
    for source in sources:
        gather(source.resolve(), original)
    migrate_tree(original, swapped)
    return Corpus(LINES[name], original, swapped)


def migrate_tree(original: Path, swapped: Path) -> None:
    shutil.rmtree(swapped, ignore_errors=True)
    shutil.copytree(original, swapped)
    command = [str(ROOT / ".venv" / "bin" / "mcpace"), "migrate", str(swapped)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    (swapped.parent / "migrate.log").write_text(done.stdout + done.stderr)


def own_folders(line: str) -> list[Path]:
    """The folders of this repository's servers for a line. FastMCP's releases share them."""
    name = line.partition("-")[0] if line.startswith("fastmcp") else line
    return [ROOT / "tests" / "adopt" / "servers" / name, ROOT / "tests" / "compat" / "servers" / name]


def save(report: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # ASCII, because servers may answer with lone surrogates.
    (folder / "compat.json").write_text(json.dumps(report, indent=1))


def measure_corpus(
    host: Host, corpus: Corpus, asked: argparse.Namespace, known: list[Documented], report: dict[str, Any]
) -> None:
    """Measures a line's objects, and adds them to the report."""
    subjects, broken = look(host, corpus, asked)
    began = time.monotonic()
    done: list[dict[str, Any]] = []
    guard = threading.Lock()
    ways = asked.way or WAYS
    entry_of_line = {"release": corpus.line.release, "broken": broken, "objects": done}
    report[corpus.line.name] = entry_of_line

    def one(subject: Subject) -> None:
        if time.monotonic() > began + asked.seconds:
            return
        entry = {"object": subject.label, "kind": subject.kind, "ways": {}}
        try:
            entry["ways"] = {way: told.to_json() for way, told in compared(host, subject, ways, asked, known).items()}
        except Exception as error:
            entry["error"] = repr(error)
        with guard:
            done.append(entry)
            if len(done) % SAVED_EVERY == 0:
                save(report, asked.out)
            verdicts = {way: told["verdict"] for way, told in entry["ways"].items()}
            progress = f"{corpus.line.name} {len(done)}/{len(subjects)}"
            print(progress, subject.label, verdicts, entry.get("error", ""), file=sys.stderr, flush=True)

    with ThreadPoolExecutor(asked.workers) as pool:
        list(pool.map(one, subjects))
    done.sort(key=lambda entry: entry["object"])
    entry_of_line["seconds"] = round(time.monotonic() - began)
    save(report, asked.out)


def look(host: Host, corpus: Corpus, asked: argparse.Namespace) -> tuple[list[Subject], dict[str, str]]:
    """The server objects of a corpus, and the files that the original SDK can't import."""
    subjects, broken = [], {}
    files = [file for file in corpus.files() if asked.only.partition(":")[0] in str(file)][:: asked.every]
    with ThreadPoolExecutor(asked.workers) as pool:
        looks = pool.map(lambda file: host.look(corpus.original / file, import_roots(corpus.original, file)), files)
        for file, (found, problem) in zip(files, looks, strict=True):
            if found is None:
                broken[str(file)] = (problem.strip().splitlines() or ["no answer"])[-1]
            else:
                subjects += [Subject(corpus, file, one["name"], one["kind"], one["path"]) for one in found]
    return [subject for subject in subjects if asked.only in subject.label], broken


def compared(
    host: Host, subject: Subject, ways: Any, asked: argparse.Namespace, known: list[Documented]
) -> dict[str, Outcome]:
    runs = runs_of(subject, asked.transport or [STDIO, HTTP], asked.revision or [*LEGACY, MODERN])
    steps: dict[str, Any] = {}
    originals = [measure(host, subject, ORIGINAL, runs, steps)]
    ways = [way for way in ways if way != SWAPPED or subject.kind != "low-level"]
    with ThreadPoolExecutor(len(WAYS)) as pool:
        firsts = list(pool.map(lambda way: measure(host, subject, way, runs, steps), ways))
    found: dict[str, Outcome] = {}
    deadline = time.monotonic() + REPEAT_LIMIT_S
    for way, first in zip(ways, firsts, strict=True):
        others = [first]
        outcome = judge(way, subject, originals, others, known)
        while outcome.verdict == DIFFERENT and len(others) <= REPEATED:
            if len(others) > 1 and time.monotonic() > deadline:
                break
            if len(originals) == len(others):
                originals.append(measure(host, subject, ORIGINAL, runs, steps))
            others.append(measure(host, subject, way, runs, steps))
            outcome = judge(way, subject, originals, others, known)
        found[way] = outcome
    return {way: told for way, told in found.items() if told.verdict != LEFT}


if __name__ == "__main__":
    sys.exit(main())
