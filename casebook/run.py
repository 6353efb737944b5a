"""`make casebook`: reproduces public reports of slow MCP, and compares mcpace's answer with the expected one.

For each case, `mcpace record` stands between the client and the server, once with the cause and once without it (the
control). An answer is right where one of the expected findings is named with the cause and none of them without it.

Usage: run.py [NAME…] [--keep FOLDER] [--write FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from case import FOLDER, Case, CaseProblem, Program, Server, read_case, read_cases
from environments import command_of
from page import page_of

from mcpace.lab.errors import LabError
from mcpace.lab.explain.recording_run import explain_recording
from mcpace.lab.paths import neutral_folder
from mcpace.lab.processes.child_processes import end_group, run_child, wait_exit
from mcpace.lab.processes.strays import ended_strays
from mcpace.report.groups import group_findings

MCPACE = str(Path(sys.executable).with_name("mcpace"))
START_LIMIT_S = 30.0
CLIENT_LIMIT_S = 45.0
END_LIMIT_S = 20.0
POLL_S = 0.02


class ReproductionProblem(Exception):
    """A case whose programs don't run."""


@dataclass
class Answer:
    """The findings with the cause and in the control, by code, with their confidence."""

    case: Case
    named: dict[str, str] = field(default_factory=dict)
    control: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str = ""
    """The reason why a program did not run; empty where both runs were made."""

    @property
    def is_right(self) -> bool:
        expected = set(self.case.expected)
        return not self.problem and bool(expected & set(self.named)) and not expected & set(self.control)

    def words(self) -> str:
        """The answer in one line."""
        if self.problem:
            return f"not reproduced: {self.problem}"
        found = ", ".join(f"{code} ({confidence})" for code, confidence in self.named.items()) or "nothing"
        wrong = sorted(set(self.case.expected) & set(self.control))
        return f"{found}{'; named in the control, without the cause: ' + ', '.join(wrong) if wrong else ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases, by the names of their folders; all if none")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of all cases to this file")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings in this folder")
    chosen = parser.parse_args()
    if chosen.write and chosen.names:
        parser.error("--write needs all cases")
    try:
        cases = [read_case(FOLDER / name) for name in chosen.names] or read_cases()
    except CaseProblem as problem:
        print(problem, file=sys.stderr)
        return 2
    answers = []
    for case in cases:
        answers.append(answer := answer_for(case, chosen.keep))
        mark = "right" if answer.is_right else "MISSED"
        print(f"{mark:6} {case.name:28} {answer.seconds:5.1f} s  {answer.words()}", flush=True)
    print(summary(answers))
    if chosen.write:
        page = page_of(answers, summary(answers), datetime.now(UTC).date())
        chosen.write.write_text(page, encoding="utf-8")
    return 0 if all(answer.is_right for answer in answers) else 1


def summary(answers: list[Answer]) -> str:
    """The share of right answers."""
    new = [answer for answer in answers if not answer.case.shaped_a_rule]
    longest = max((answer.seconds for answer in answers), default=0.0)
    return (
        f"{sum(answer.is_right for answer in answers)} of {len(answers)} reports were named; of the {len(new)} for "
        f"which no rule was written, {sum(answer.is_right for answer in new)}. The longest case took {longest:.0f} s."
    )


def answer_for(case: Case, keep: Path | None) -> Answer:
    """Reproduces a case with its cause and without it. Moves the recordings to the folder ``keep``."""
    answer = Answer(case)
    try:
        with ended_strays():
            commands = [[command_of(case.name, program) for program in case.programs(cause)] for cause in (True, False)]
            began = time.monotonic()
            recordings = [keep and keep / f"{case.name}{end}.jsonl.zst" for end in ("", "-control")]
            answer.named = reproduce(case.programs(True), commands[0], recordings[0])
            answer.control = reproduce(case.programs(False), commands[1], recordings[1])
            answer.seconds = time.monotonic() - began
    except (ReproductionProblem, LabError) as problem:
        answer.problem = str(problem)
    return answer


def reproduce(programs: tuple[Server, Program], commands: list[list[str]], keep: Path | None) -> dict[str, str]:
    """Runs a client and a server with the recorder between them. Returns the findings, with their confidence."""
    server, client = commands
    with tempfile.TemporaryDirectory(prefix="mcpace-casebook-") as name:
        folder = Path(name)
        file = folder / "recording.jsonl.zst"
        if programs[0].transport == "stdio":
            command = [MCPACE, "record", "--upstream", f"stdio:{shlex.join(server)}", "--out", str(file)]
            run_client(client, {"MCP_COMMAND": json.dumps(command)})
        else:
            with (
                running_server(server, folder) as (pid, port),
                running_recorder(f"http://127.0.0.1:{port}{programs[0].path}", pid, file) as url,
            ):
                run_client(client, {"MCP_URL": url})
        run = explain_recording(file)
        if keep:
            keep.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, keep)
    return {group.code: group.example.confidence for group in group_findings(run.cases)}


def run_client(command: list[str], env: dict[str, str]) -> None:
    done = run_child(command, CLIENT_LIMIT_S, env=env)
    if done.timed_out:
        raise ReproductionProblem(f"the client ran for more than {CLIENT_LIMIT_S:g} s")
    if done.code:
        raise ReproductionProblem(f"the client ended with code {done.code}: {last_line(done.stderr)}")


@contextlib.contextmanager
def running_server(command: list[str], folder: Path) -> Iterator[tuple[int, int]]:
    """Starts a server over HTTP. Yields its process id and its port once the port accepts connections."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    log = folder / "server.log"
    with running(command, log, {"PORT": str(port)}) as child:
        deadline = time.monotonic() + START_LIMIT_S
        while not accepts(port):
            if child.poll() is not None or time.monotonic() > deadline:
                raise ReproductionProblem(f"the server doesn't listen: {last_line(log.read_text(errors='replace'))}")
            time.sleep(POLL_S)
        yield child.pid, port


@contextlib.contextmanager
def running_recorder(upstream: str, pid: int, file: Path) -> Iterator[str]:
    """Starts `mcpace record`. Yields its URL, and waits until the recording is complete."""
    command = [MCPACE, "record", "--upstream", upstream, "--watch", str(pid), "--out", str(file)]
    log = file.with_suffix(".log")
    with running(command, log, {}) as child:
        deadline = time.monotonic() + START_LIMIT_S
        while "point your client at " not in (printed := log.read_text(errors="replace")):
            if child.poll() is not None or time.monotonic() > deadline:
                raise ReproductionProblem(f"the recorder doesn't listen: {last_line(printed)}")
            time.sleep(POLL_S)
        yield printed.partition("point your client at ")[2].split()[0]
        child.send_signal(signal.SIGINT)
        if not wait_exit(child, END_LIMIT_S):
            raise ReproductionProblem("the recorder doesn't end")


@contextlib.contextmanager
def running(command: list[str], log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a program in a process group of its own, and ends the group."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=neutral_folder(),
            env={**os.environ, **env}, start_new_session=True,
        )  # fmt: skip
    try:
        yield child
    finally:
        end_group(child)


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it printed nothing"


if __name__ == "__main__":
    sys.exit(main())
