"""Puts the flight recorder in front of the servers of a host's configuration, and takes it away again.

A wrapped server has the command ``/bin/sh``, and its own command and arguments, as they were written, follow the words
of the recorder. Every value stays in the text, with its quotes and its variables, so that unwrapping needs nothing but
the text: edits that were made meanwhile survive, and an unchanged configuration gets its bytes back.

Design constraint: the shell's script is constant. Every word of the user is an argument of the shell, and never a part
of its script. The script starts the server itself where mcpace was removed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mcpace
from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.server_entries import ServerEntry, parse_entries

SHELL = "/bin/sh"
SCRIPT = (
    'if [ -x "$0" ] && [ -r "$1" ]; then exec "$0" -EP "$@"; fi; '
    'echo "mcpace: $1 is missing, so the server runs without the flight recorder: '
    'install mcpace again, or restore this configuration" >&2; shift 3; exec "$@"'
)
"""Its words: the interpreter, mcpace's program, one of :data:`MARKS`, the folder, and the server's own command."""
PROGRAM = str(Path(mcpace.__file__).resolve().parent / "__main__.py")
FLIGHT, FLIGHT_BARE = MARKS = ("flight", "flight-bare")
"""Mark of a wrapped server; the second one where the entry had no arguments of its own before."""
MARK_AT, FOLDER_AT, COMMAND_AT = 5, 6, 7
"""Places of words in a wrapped command line, after the shell, ``-c``, the script, the interpreter and the program."""
FORBIDDEN = re.compile(r"\$\{|[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that a host would take for a variable, or that no configuration may have unescaped."""

FolderOf = Callable[[ServerEntry], Path]


@dataclass
class Change:
    """Result of wrapping or unwrapping: the new text, the servers that it changes, and those left as they are."""

    text: str
    changed: list[tuple[str, ...]] = field(default_factory=list)
    """Paths of their entries."""
    left: list[tuple[str, str]] = field(default_factory=list)
    """Name and reason."""


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes from ``start`` to ``end``."""

    start: int
    end: int
    new: bytes


class Left(Exception):
    """A server is left as it is; the message is the reason."""


def wrap_text(text: str, folder_of: FolderOf, toml: bool, chosen: frozenset[str] = frozenset()) -> Change:
    """Wraps the servers that a host starts by a command; those named ``chosen``, if any are.

    A server that is wrapped already is wrapped anew with this installation of mcpace. Raises :class:`UsageProblem`
    where the text can't be parsed, or where unwrapping would not give the same text.
    """
    original = unwrap_text(text, toml, chosen)
    change = change_text(
        original.text, toml, chosen, lambda entry, encoded: _wrap_edits(entry, encoded, folder_of(entry), toml)
    )
    if unwrap_text(change.text, toml, chosen).text != original.text:
        raise UsageProblem("can't be wrapped: unwrapping would not give the same text")
    return change


def unwrap_text(text: str, toml: bool, chosen: frozenset[str] = frozenset()) -> Change:
    """Restores the commands of wrapped servers; of those named ``chosen``, if any are.

    Raises :class:`UsageProblem` where the text can't be parsed.
    """
    change = change_text(text, toml, chosen, _unwrap_edits)
    parse_entries(change.text, toml)
    return change


def change_text(
    text: str, toml: bool, chosen: frozenset[str], edits_of: Callable[[ServerEntry, bytes], list[Edit]]
) -> Change:
    """Applies the edits of each server's entry; of those named ``chosen``, if any are.

    ``edits_of`` gets an entry and the text, and raises :class:`Left` for a server that can't be changed. Raises
    :class:`UsageProblem` where the text can't be parsed.
    """
    encoded = text.encode()
    change, edits = Change(text), list[Edit]()
    for entry in parse_entries(text, toml):
        if chosen and entry.name not in chosen:
            continue
        try:
            found = edits_of(entry, encoded)
        except (Left, UsageProblem) as reason:
            change.left.append((entry.name, str(reason)))
        else:
            edits += found
            if found:
                change.changed.append(entry.path)
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        encoded = encoded[: edit.start] + edit.new + encoded[edit.end :]
    change.text = encoded.decode()
    return change


def own_command(command: Sequence[str]) -> tuple[str, ...]:
    """The server's own command in the command of a wrapped entry, or of a recorder's process.

    Any other command, and one whose own command is gone, is returned as it is.
    """
    words = list(command)
    if words[1:2] == ["-EP"] and Path(*words[2:3]).parts[-2:] == Path(PROGRAM).parts[-2:]:
        words = [SHELL, "-c", SCRIPT, words[0], *words[2:]]  # the shell has become the recorder
    own = tuple(words[COMMAND_AT:]) if _is_wrapped(words) else ()
    return own or tuple(command)


def _wrap_edits(entry: ServerEntry, text: bytes, folder: Path, toml: bool) -> list[Edit]:
    command, arguments = entry.member("command"), entry.member("args")
    if command is None:
        return []
    if _is_wrapped(_texts(entry.words() or [])):
        raise Left("it is wrapped already, in a way that this release can't change")
    own = text[command.node.start : command.node.end]
    if (items := command.node.items) is not None:
        if not items or items[0].text is None:
            raise Left("its command is empty")
        return [_insertion(command.node.start + 1, _written([SHELL, *_recorder_words(FLIGHT, folder)]) + b", ")]
    if command.node.text is None:
        raise Left("its command is no text")
    if arguments is not None and arguments.node.items is None:
        raise Left("its args are no array")
    mark = FLIGHT_BARE if arguments is None else FLIGHT
    words = _written(_recorder_words(mark, folder)) + b", " + own
    shell = Edit(command.node.start, command.node.end, _written([SHELL]))
    if arguments is not None:
        more = b", " if arguments.node.items else b""
        return [shell, _insertion(arguments.node.start + 1, words + more)]
    return [shell, _arguments_insertion(entry, command, text, words, toml)]


def _arguments_insertion(
    entry: ServerEntry, command: _core.ConfigMember, text: bytes, words: bytes, toml: bool
) -> Edit:
    """Inserts the member ``args`` before ``command``."""
    if entry.node.has_lines:
        start = text.rfind(b"\n", 0, command.start) + 1
        line_end = text.find(b"\n", command.node.end)
        newline = b"\r\n" if line_end > 0 and text[line_end - 1 : line_end] == b"\r" else b"\n"
        # The names of outer tables may stand before the name on its line.
        return _insertion(start, text[start : command.start] + b"args = [" + words + b"]" + newline)
    if toml and text[: command.start].rstrip()[-1:] not in (b"{", b","):
        raise Left("its command has a dotted name within braces")
    return _insertion(command.start, (b"args = [" if toml else b'"args": [') + words + b"], ")


def _unwrap_edits(entry: ServerEntry, text: bytes) -> list[Edit]:
    words = entry.words() or []
    texts = _texts(words)
    command, arguments = entry.member("command"), entry.member("args")
    if command is None or not _is_wrapped(texts):
        return []
    if len(words) <= COMMAND_AT:
        raise Left("it is wrapped, and its own command is gone from its args")
    own = words[COMMAND_AT]
    after = words[COMMAND_AT + 1].start if len(words) > COMMAND_AT + 1 else None
    if command.node.items is not None:
        return [Edit(command.node.start + 1, _after_comma(text, words[FOLDER_AT].end, own.start), b"")]
    assert arguments is not None
    restored = Edit(command.node.start, command.node.end, text[own.start : own.end])
    if after is not None:
        return [restored, Edit(arguments.node.start + 1, _after_comma(text, own.end, after), b"")]
    if texts[MARK_AT] == FLIGHT_BARE:
        return [restored, _arguments_removal(entry, arguments, text)]
    comma = re.match(rb"\s*,", text[own.end : arguments.node.end])
    return [restored, Edit(arguments.node.start + 1, own.end + (comma.end() if comma else 0), b"")]


def _after_comma(text: bytes, end: int, following: int) -> int:
    """The place after the comma between two words, and after its space, which wrapping has inserted."""
    comma = re.compile(rb"\s*, ?").match(text, end, following)
    return comma.end() if comma else following


def _arguments_removal(entry: ServerEntry, arguments: _core.ConfigMember, text: bytes) -> Edit:
    """Removes the member ``args``."""
    if entry.node.has_lines:
        start = text.rfind(b"\n", 0, arguments.start) + 1
        line_end = re.match(rb"[ \t]*\r?\n", text[arguments.node.end :])
        return Edit(start, arguments.node.end + (line_end.end() if line_end else 0), b"")
    members = entry.node.members or []
    index = members.index(arguments)
    if index + 1 < len(members):
        following = re.match(rb"\s*,\s*", text[arguments.node.end :])
        return Edit(arguments.start, arguments.node.end + (following.end() if following else 0), b"")
    # A host that writes its configuration anew may change the order.
    return Edit(members[index - 1].node.end, arguments.node.end, b"")


def _recorder_words(mark: str, folder: Path) -> list[str]:
    return ["-c", SCRIPT, sys.executable, PROGRAM, mark, str(folder)]


def _is_wrapped(words: Sequence[str | None]) -> bool:
    return words[:2] == [SHELL, "-c"] and len(words) > FOLDER_AT and words[MARK_AT] in MARKS


def _texts(words: list[_core.ConfigNode]) -> list[str | None]:
    return [word.text for word in words]


def _insertion(at: int, new: bytes) -> Edit:
    return Edit(at, at, new)


def _written(words: list[str]) -> bytes:
    """Words as strings of JSON, which are strings of TOML, too."""
    for word in words:
        if FORBIDDEN.search(word):
            raise UsageProblem(f"the path {word!r} has characters that a host would change")
    return ", ".join(json.dumps(word, ensure_ascii=False) for word in words).encode()
