"""The line at which a function of JavaScript calls another one, from the text of its file.

V8's profiles tell the line of the innermost call only. The text tells the line where it names the called function once.

Deliberately absent: a parser. A name that stands on several lines, or on none, leaves the line unknown.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcpace.lab.inside.regular_files import read_bounded

MOST_BYTES = 8 << 20
MOST_FILES = 200
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|[][(){};]""",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_$][\w$]*")


class JavaScriptCalls:
    """Looks for calls in files, each of which is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[tuple[str, int, int, str], int | None] = {}

    def line_of_call(self, file: str, line: int, column: int, callee: str) -> int | None:
        """The line of a call to ``callee`` in the function that begins at a line, counted from 1, and a column, from 0.

        ``None`` where the text does not tell.
        """
        key = (file, line, column, callee)
        if key not in self._lines:
            self._lines[key] = _only_call(self._text_of(file), line, column, callee)
        return self._lines[key]

    def _text_of(self, file: str) -> str:
        if file not in self._texts:
            self._texts[file] = read_bounded(Path(file), MOST_BYTES) if len(self._texts) < MOST_FILES else ""
        return self._texts[file]


def _only_call(text: str, line: int, column: int, callee: str) -> int | None:
    name = callee.rsplit(".", 1)[-1].rsplit(" ", 1)[-1]
    if not NAME.fullmatch(name):
        return None
    rest = text.split("\n", line - 1)[-1] if text.count("\n") >= line - 1 else ""
    body = _body_of_function(rest[column:])
    calls = re.finditer(rf"(?<![\w$]){re.escape(name)}\s*\(", body)
    found = {line + body.count("\n", 0, call.start()) for call in calls}
    return found.pop() if len(found) == 1 else None


def _body_of_function(text: str) -> str:
    """The text of the function that begins a text, without the contents of strings and comments.

    The function ends with the brace that closes its body. One without a body, ``x => f(x)``, ends with its statement.
    """
    parts, at, depth, has_body = [], 0, 0, False
    for token in TOKENS.finditer(text):
        parts.append(text[at : token.start()])
        at = token.end()
        word = token[0]
        if len(word) > 1:
            parts.append("\n" * word.count("\n"))
            continue
        parts.append(word)
        has_body |= word == "{" and depth == 0
        depth += (word in "([{") - (word in ")]}")
        if depth < 0 or (depth == 0 and (word == ";" or (word == "}" and has_body))):
            return "".join(parts)
    return "".join([*parts, text[at:]])
