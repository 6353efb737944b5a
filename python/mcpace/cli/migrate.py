"""``mcpace migrate``: rewrites a project's imports of the official SDK or FastMCP to mcpace's."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli.notes import inform, note
from mcpace.migration import project
from mcpace.migration.rewriting import Rewritten, Unreadable, rewrite
from mcpace.report.words.quantities import clean
from mcpace.system.files import replace_content

HIT, USAGE, UNREACHABLE = 1, 2, 3
LONGEST_PATH = 4_096


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("migrate")(migrate)


def migrate(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder, or one Python file.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 where an import would be rewritten.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print the changes as a unified diff.")] = False,
) -> None:
    """Rewrite the imports of mcp 1.x, mcp 2.x and FastMCP that have a counterpart in mcpace.

    Nothing else changes. Imports without a counterpart are listed with their place and what to do. Exit codes: 0 done,
    1 --check found an import to rewrite, 2 usage, 3 a file could not be read, parsed or written.
    """
    if not path.exists():
        note(f"there is no file or folder {path}")
        raise typer.Exit(USAGE)
    if not (path.is_dir() or path.is_file()):  # reading a pipe or a device may not end
        note(f"{path} is neither a file nor a folder")
        raise typer.Exit(USAGE)
    own = project.own_packages(path)
    imports = changed = left = failed = 0
    unlisted: list[OSError] = []
    for file in project.python_files(path, unlisted.append):
        name = _user_path(file, path)
        try:
            before = file.read_bytes()
            done = rewrite(before, own)
            if done.data != before:
                if diff:
                    typer.echo(_unified_diff(name, before, done.data), nl=False)
                elif not check:
                    replace_content(file, done.data)
        except Unreadable as problem:
            note(f"{name} is left as it is: it cannot be parsed ({problem})")
            failed += 1
            continue
        except OSError as problem:
            note(f"{name} is left as it is: {problem.strerror}")
            failed += 1
            continue
        if done.data != before:
            changed += 1
            imports += done.imports
            if not diff:
                typer.echo(f"{name}: {_count_words(done.imports, 'import')} {'to rewrite' if check else 'rewritten'}")
        _print_changes(name, done)
        left += len(done.left)
    for unread in unlisted:
        note(f"{unread.filename} is left as it is: {unread.strerror}")
    failed += len(unlisted)
    verb = "would be rewritten" if check or diff else "rewritten"
    rest = f"; {_count_words(left, 'import')} without a counterpart" if left else ""
    inform(f"{_count_words(imports, 'import')} in {_count_words(changed, 'file')} {verb}{rest}")
    if failed:
        raise typer.Exit(UNREACHABLE)
    if check and changed:
        raise typer.Exit(HIT)


def _print_changes(name: str, done: Rewritten) -> None:
    for left in done.left:
        note(f"{name}:{left.line}: {left.name} has no counterpart: {left.advice}")


def _user_path(file: Path, path: Path) -> str:
    """Path of the file relative to the user's argument, on one line and without control characters."""
    return clean(path / file.relative_to(path.resolve()) if path.is_dir() else path, LONGEST_PATH)


def _unified_diff(name: str, before: bytes, after: bytes) -> str:
    left, right = (data.decode(errors="replace").splitlines(keepends=True) for data in (before, after))
    found = difflib.unified_diff(left, right, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)


def _count_words(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
