"""Runs a tutorial of docs/tutorials: writes its files, runs its commands in order, and compares what they print.

The format of a page:

- A block with ``title="NAME"`` is a file. A second block with the same title is added at the end of the file.
- A ``console`` block holds commands after ``$`` and what they print. A second word, such as ``network``, is the
  pytest marker of tests that run the block; such a block is left out elsewhere.
- A command with `` &`` at its end goes on running; ``kill %1`` sends SIGTERM to the first of them, and waits.
- ``echo $?`` prints the exit code of the command before it. All other commands must end with 0.
- A line ``…`` stands for left out output. Figures, units and bars may differ from the printed ones.
- Ports of the page are replaced by free ones.
- ``cargo`` runs in the repository, all other commands in a folder of the test's own.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from support.commands import closed_port

ROOT = Path(__file__).parents[3]
LIMIT_S = 600.0
START_S = 60.0
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
PORT = re.compile(r"\b80\d\d\b")
UNITS = {"ns", "µs", "ms", "s", "kB", "MB", "%"}
LEFT_OUT = "…"


@dataclass(frozen=True)
class File:
    """A file that the reader saves, or the end of one."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command, what the page says that it prints, and the marker of tests that run it (empty: all)."""

    line: str
    printed: str
    marker: str


def steps(page: str) -> list[File | Command]:
    """Returns the files and commands of a page in order."""
    found: list[File | Command] = []
    for language, rest, body in FENCE.findall(page):
        title = re.search(r'title="([^"]+)"', rest)
        if title:
            found.append(File(title[1], body))
        elif language == "console":
            found += _commands(body, rest.strip())
    return found


def _commands(body: str, marker: str) -> list[Command]:
    parts = re.split(r"^\$ ", body.replace("\\\n", ""), flags=re.M)
    assert not parts[0].strip(), f"a console block begins with {parts[0]!r}, not with a command"
    return [Command(line.strip(), printed, marker) for line, _, printed in (part.partition("\n") for part in parts[1:])]


def markers(page: str) -> set[str]:
    """Returns the markers of the page's blocks; the empty one stands for blocks that every test runs."""
    return {step.marker for step in steps(page) if isinstance(step, Command)}


@dataclass
class Reader:
    """A reader who follows a page in a folder. Use it as a context: all programs are ended at its end."""

    folder: Path
    ports: dict[str, str] = field(default_factory=dict)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    last_code: int = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(START_S)

    def follow(self, page: str, marker: str) -> None:
        """Does the steps without a marker and those with ``marker``.

        Fails where a command ends or prints otherwise than the page says.
        """
        wanted = [step for step in steps(page) if isinstance(step, File) or step.marker in ("", marker)]
        for number, step in enumerate(wanted):
            if isinstance(step, File):
                self._save(step)
                continue
            printed = self._do(step)
            after = wanted[number + 1] if number + 1 < len(wanted) else None
            is_code_shown = isinstance(after, Command) and after.line == "echo $?"
            assert is_code_shown or self.last_code == 0, f"{step.line}: exit code {self.last_code}\n{printed}"
            missing = difference(step.printed, printed)
            assert missing is None, f"{step.line} does not print\n{missing}\nbut\n{printed}"

    def _save(self, file: File) -> None:
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as output:
            output.write(self._with_free_ports(file.text))

    def _do(self, command: Command) -> str:
        """Returns what the command prints on both streams."""
        line = command.line
        if line == "echo $?":
            code, self.last_code = self.last_code, 0
            return f"{code}\n"
        if ended := re.fullmatch(r"kill %(\d+)", line):
            return self._end(int(ended[1]) - 1)
        is_background = line.endswith(" &")
        process = self._start(self._with_free_ports(line.removesuffix(" &")), is_background=is_background)
        if is_background:
            self.running.append(process)
            return self._read_until_printed(len(self.running) - 1, command.printed)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(START_S)
        self.last_code = process.returncode
        return output.decode()

    def _start(self, line: str, *, is_background: bool) -> subprocess.Popen[bytes]:
        words = shlex.split(line, comments=True)
        own = {}
        while re.match(r"[A-Z_]+=", words[0]):
            name, _, own[name] = words.pop(0).partition("=")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        program = shutil.which(words[0], path=path)
        assert program, f"{words[0]} is needed to run {line}"
        log = self._log(len(self.running)).open("wb") if is_background else subprocess.PIPE
        return subprocess.Popen(
            [program, *words[1:]],
            cwd=ROOT if words[0] == "cargo" else self.folder,
            env={**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONUNBUFFERED": "1", **own},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _log(self, job: int) -> Path:
        return self.folder / f".job{job + 1}"

    def _read_until_printed(self, job: int, expected: str) -> str:
        """Waits until the program has printed what the page says, or a line if the page shows none."""
        said = ""
        with subprocess.Popen(
            ["tail", "-n", "+1", "-f", f"--pid={self.running[job].pid}", str(self._log(job))], stdout=subprocess.PIPE
        ) as tail:
            assert tail.stdout is not None
            while not said or difference(expected, said) is not None:
                is_ready, _, _ = select.select([tail.stdout], [], [], LIMIT_S)
                part = os.read(tail.stdout.fileno(), 65_536) if is_ready else b""
                if not part:
                    break
                said += part.decode()
            tail.terminate()
        assert said, f"{self.running[job].args} printed nothing"
        return said

    def _end(self, job: int) -> str:
        self.running[job].terminate()
        self.running[job].wait(START_S)
        self.last_code = 0
        return self._log(job).read_text()

    def _with_free_ports(self, text: str) -> str:
        return PORT.sub(lambda found: self.ports.setdefault(found[0], str(closed_port())), text)


def difference(expected: str, printed: str) -> str | None:
    """Returns the first part of the page's output that was not printed, or None."""
    rest = " ".join(printed.split())
    for part in re.split(rf"^{LEFT_OUT}$", expected, flags=re.M):
        if not part.strip():
            continue
        found = re.search(_pattern(part), rest)
        if not found:
            return part.strip()
        rest = rest[found.end() :]
    return None


def _pattern(text: str) -> str:
    """A pattern of the words, in which a run of n figures, units and bars may have n - 1 to n + 1 words."""
    pattern, wild = "", 0
    for word in [*text.split(), ""]:
        if word and _varies(word):
            wild += 1
            continue
        if wild:
            pattern += rf"(?:\S+\s*){{{max(0, wild - 1)},{wild + 1}}}"
        pattern += re.escape(word) + (r"\s*" if word else "")
        wild = 0
    return pattern


def _varies(word: str) -> bool:
    """Whether the word is a figure, a unit, or a bar of the ledger."""
    return (
        any(c.isdigit() for c in word)
        or word.strip("().,") in UNITS
        or not re.search(r"[^\W_]", word)
        or bool(re.fullmatch(r"[-+>S<R.]{3,}", word))
    )
