"""Lines of styled text for a terminal: headings, wrapped paragraphs, columns.

This module wraps the text, not the console, so that the width of a line never depends on the console.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.text import Text

ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control characters, and characters that hide text or change its direction. No line of the report contains any."""


def replace_controls(line: Text) -> Text:
    """Replaces every character of :data:`ACTING` in a line, which could only come from text that was not cleaned."""
    if ACTING.search(line.plain):
        line.plain = ACTING.sub("\N{REPLACEMENT CHARACTER}", line.plain)
    return line


def blank() -> Text:
    """An empty line."""
    return Text("")


def heading(title: str, width: int, right: str = "") -> Text:
    """``title ─────── right`` over the whole width."""
    line = Text()
    room = width - cell_len(right) - (1 if right else 0)
    if title:
        line.append(fit_cell(title, max(room - 4, 1)).rstrip(), style="bold cyan")
        line.append(" ")
    line.append("─" * max(room - cell_len(line.plain), 0), style="dim")
    if right:
        line.append(f" {right}", style="dim")
    return line


def wrap_paragraph(
    text: str, width: int, *, indent: int = 0, hang: int | None = None, style: str = ""
) -> Iterator[Text]:
    """A paragraph, wrapped to ``width``. ``hang`` is the indent of all lines after the first."""
    rest = indent if hang is None else hang
    yield from wrap_indented(Text(text, style=style), width, indent, rest)


def wrap_indented(text: Text, width: int, indent: int, hang: int) -> Iterator[Text]:
    """Wraps styled text, the first line at ``indent``, the others at ``hang``."""
    # The larger indent determines the width, so that every line fits with either.
    for number, line in enumerate(_wrap_words(text, max(width - max(indent, hang), 10))):
        yield Text(" " * (hang if number else indent)) + line


def fit_cell(text: str, width: int) -> str:
    """Text of exactly ``width`` cells, truncated with an ellipsis or padded."""
    if cell_len(text) > width:
        return set_cell_size(text, max(width - 1, 0)) + "…"
    return set_cell_size(text, width)


def align_right(text: str, width: int) -> str:
    """Text of at least ``width`` cells, padded on the left."""
    return " " * max(width - cell_len(text), 0) + text


def _wrap_words(text: Text, width: int) -> Iterator[Text]:
    line = Text()
    for word in text.split(" "):
        while cell_len(word.plain) > width:
            if line.plain:
                yield line
                line = Text()
            head = max(1, len(set_cell_size(word.plain, width).rstrip()))
            yield word[:head]
            word = word[head:]
        if line.plain and cell_len(line.plain) + 1 + cell_len(word.plain) > width:
            yield line
            line = Text()
        line = line + Text(" ") + word if line.plain else word
    if line.plain:
        yield line
