"""Reject comments and docstrings that open with a word that hides the subject of the sentence.

CONTRIBUTING.md ("Language") has the rule: a sentence of a comment, a docstring or a document begins
with its subject. The openings below never do. `make lint` runs this script over all tracked sources.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

OPENINGS = r"(?:What|Who|Whoever|Whatever|Of|So many|So much|So long|The same|See the module)\b"
_FIRST = re.compile(rf"{OPENINGS}(?![^.]*\?)")
"""An opening at the start of a comment. A question may begin with one."""
_LATER = re.compile(rf"(?<=[.!?;:]) {OPENINGS}(?![^.]*\?)")
"""An opening after the end of a sentence."""
_RUST_COMMENT = re.compile(r"^\s*(//[/!]?)(?: (.*))?$")
_SLASH_COMMENTS = {".rs", ".ts", ".tsx", ".mts", ".mjs", ".go", ".java"}
_PYTHON = {".py", ".pyi"}


def slash_comments(text: str) -> Iterator[tuple[int, str]]:
    """Each block of `//`, `///` or `//!` lines, and each `/** */` comment, with the number of its first line."""
    block: list[str] = []
    first, kind = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _RUST_COMMENT.match(line)
        if found and (not block or found[1] == kind) and found[2]:
            if not block:
                first, kind = number, found[1]
            block.append(found[2])
            continue
        if block:
            yield first, " ".join(block)
            block = []
        if found and found[2]:
            first, kind, block = number, found[1], [found[2]]
    if block:
        yield first, " ".join(block)
    for found in re.finditer(r"/\*\*(.*?)\*/", text, re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[1].replace("*", " ").split())


def python_comments(text: str) -> Iterator[tuple[int, str]]:
    """Each docstring, including the strings below attributes, and each block of `#` lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for paragraph in node.value.value.split("\n\n"):
                yield node.lineno, " ".join(paragraph.split())
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield first, " ".join(block)
            block = []
        first = first if block else token.start[0]
        last = token.start[0]
        block.append(token.string.lstrip("#").strip())
    if block:
        yield first, " ".join(block)


def violations(path: Path) -> Iterator[str]:
    """One line for each forbidden opening of the file: place and the beginning of the sentence."""
    text = path.read_text(encoding="utf-8")
    comments = python_comments(text) if path.suffix in _PYTHON else slash_comments(text)
    for number, comment in comments:
        found = _FIRST.match(comment) or _LATER.search(comment)
        if found:
            yield f"{path.relative_to(ROOT)}:{number}: {comment[found.start() :].strip()[:80]}"


def main(folders: list[str]) -> int:
    """Check the tracked sources below `folders`, or all of them; 1 when an opening was found."""
    names = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in names.splitlines()]
    found = [
        line
        for path in paths
        if path.suffix in _SLASH_COMMENTS | _PYTHON and path.is_file()
        for line in violations(path)
    ]
    if found:
        print("\n".join(found))
        print(f"{len(found)} comments open with a forbidden word: begin with the subject (CONTRIBUTING.md, Language)")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
