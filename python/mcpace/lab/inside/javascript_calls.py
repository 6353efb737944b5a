"""The line at which a function of JavaScript calls another one, from the text of its file.

V8's profiles tell the line of the innermost call only. The text tells the line where it names the called function once.

Deliberately absent: a parser. A name that stands on several lines, or on none, leaves the line unknown.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path

from mcpace.lab.inside.regular_files import read_bounded

MOST_BYTES = 8 << 20
MOST_FILES = 200
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"""|'(?:\\.|[^'\\\n])*+'|"(?:\\.|[^"\\\n])*+"|`(?:\\.|[^`\\])*+(?:`|\\?\Z)"""
    r"""|\\.|[][(){};]""",
    re.DOTALL,
)
"""Comments, strings, escaped characters and brackets. A comment or a template without an end takes the rest of the
text, and an escaped quote begins no string. So the scan of a text takes time in proportion to its length.
"""
NAME = re.compile(r"[A-Za-z_$][\w$]*")


class JavaScriptCalls:
    """Looks for calls in files, each of which is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, SourceText] = {}
        self._bodies: dict[tuple[str, int, int], str] = {}
        self._lines: dict[tuple[str, int, int, str], int | None] = {}

    def line_of_call(self, file: str, line: int, column: int, callee: str) -> int | None:
        """The line of a call to ``callee`` in the function that begins at a line, counted from 1, and a column, from 0.

        ``None`` where the text does not tell.
        """
        key = (file, line, column, callee)
        if key not in self._lines:
            self._lines[key] = _only_call(self._body_of(file, line, column), line, callee)
        return self._lines[key]

    def has_line(self, file: str, begin: int, column: int, line: int) -> bool:
        """Whether a line is one of the function that begins at ``begin`` and ``column``; true where no text is known.

        V8's profiles also tell lines of functions that were inlined, as if they were in the file of the outer one.
        """
        if (begin, column) == (1, 0):
            # The code of the module itself, which is no function in the text.
            text = self._text_of(file)
            return not text.text or line <= len(text.lines)
        body = self._body_of(file, begin, column)
        return not body or begin <= line <= begin + body.count("\n")

    def _body_of(self, file: str, line: int, column: int) -> str:
        key = (file, line, column)
        if key not in self._bodies:
            text = self._text_of(file)
            begin = text.lines[line - 1] + column if 0 < line <= len(text.lines) else len(text.text)
            self._bodies[key] = _body_of_function(text.text, begin)
        return self._bodies[key]

    def _text_of(self, file: str) -> SourceText:
        if file not in self._texts:
            text = read_bounded(Path(file), MOST_BYTES) if len(self._texts) < MOST_FILES else ""
            self._texts[file] = SourceText(text)
        return self._texts[file]


class SourceText:
    """The text of a file, and the positions at which its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = array("Q", [0])
        self.lines.extend(end.end() for end in re.finditer("\n", text))


def _only_call(body: str, line: int, callee: str) -> int | None:
    """The only line of a function's body, which begins at ``line``, that has a call to ``callee``."""
    name = callee.rsplit(".", 1)[-1].rsplit(" ", 1)[-1]
    if not NAME.fullmatch(name):
        return None
    calls = re.finditer(rf"(?<![\w$]){re.escape(name)}\s*\(", body)
    found = {line + body.count("\n", 0, call.start()) for call in calls}
    return found.pop() if len(found) == 1 else None


def _body_of_function(text: str, begin: int) -> str:
    """The text of the function that begins at a position, without the contents of strings and comments.

    The function ends with the brace that closes its body. One without a body, ``x => f(x)``, ends with its statement.
    """
    parts, at, depth, has_body = [], begin, 0, False
    for token in TOKENS.finditer(text, begin):
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
