"""The language runtime that a command starts, as far as the command tells.

Design constraint: Nothing is started. The words, links and first lines of files decide.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

MOST_SCRIPTS = 4
"""Scripts whose interpreter is looked for, one after another."""
FIRST_LINE_BYTES = 512


class Runtime(StrEnum):
    """A language runtime into which mcpace can look."""

    PYTHON = "python"
    NODE = "node"
    JAVA = "java"


PROGRAMS = {
    Runtime.PYTHON: re.compile(r"(?:python|pypy)[\d.]*|uvx?|pipx|poetry|pdm|hatch"),
    Runtime.NODE: re.compile(r"node(?:js)?|npx|npm|pnpm|pnpx|yarn|tsx|ts-node"),
    Runtime.JAVA: re.compile(r"java|jbang|mvnw?|gradlew?"),
}
WRAPPERS = re.compile(r"env|nice|nohup|timeout|stdbuf|sh|bash|dash|zsh|exec")


def command_runtimes(command: Sequence[str]) -> tuple[Runtime, ...]:
    """Returns the runtime that ``command`` starts; all of them where nothing tells which one it is."""
    for _, program in started_programs(command):
        name = Path(program).name.removesuffix(".exe")
        for runtime, programs in PROGRAMS.items():
            if programs.fullmatch(name):
                return (runtime,)
    return tuple(Runtime)


def started_programs(command: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """The program of a command, the interpreter of that program if it is a script, and so on.

    Each comes with the words that start it. Words such as ``env`` and ``sh -c`` are no program.
    """
    words = list(command)
    for _ in range(MOST_SCRIPTS):
        program = _program_word(words)
        if not program:
            return
        yield words, program
        words = _script_interpreter(program)


def _program_word(words: Sequence[str]) -> str:
    """The first word that names a program and is no wrapper such as ``env`` or ``sh -c``; empty where there is none."""
    is_wrapped = False
    for part in words:
        for word in part.split() if is_wrapped else [part]:
            if word.startswith("-") or "=" in word:
                continue
            if not WRAPPERS.fullmatch(Path(word).name):
                return word
            is_wrapped = True
    return ""


def _script_interpreter(word: str) -> list[str]:
    """The words behind ``#!`` in the first line of a script; empty for any other file."""
    path = shutil.which(word)
    if path is None:
        return []
    try:
        with Path(path).open("rb") as file:
            first = file.readline(FIRST_LINE_BYTES)
    except OSError:
        return []
    return first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
