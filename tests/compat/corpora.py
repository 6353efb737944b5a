"""The corpora of code for measuring compatibility: their sources, and the files that are made of them."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tarfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

from hosting import ROOT

LEGACY = ("2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
INSTALL_LIMIT_S = 900
EXTRA = ("typer", "httpx", "uvicorn", "fastapi", "pillow", "pydantic-settings")
"""Packages that examples import, and those of mcpace itself."""
LOCKS = ROOT / "tests" / "adopt" / "environments"
FOLDERS = ("docs_src", "examples", "docs")
LEFT_OUT = re.compile(
    r"(^|/)(docs/(python-sdk|v2|v3|i18n)|examples/clients|tests|node_modules|changelog\.mdx|\.\w+)(/|$)|i18n"
)
NAMES = re.compile(r"\b(FastMCP|MCPServer|Server)\b")
BLOCK = re.compile(r"^(?P<indent>[ \t]*)```(?:python|py)\b[^\n]*\n(?P<code>.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
MAKES_ONE = re.compile(r"\b(FastMCP|MCPServer)\(")


@dataclass(frozen=True)
class Line:
    """A release line of an SDK."""

    name: str
    release: str
    revisions: tuple[str, ...]


LINES = {
    line.name: line
    for line in (
        Line("mcp-2", "mcp==2.3.0", (*LEGACY, MODERN)),
        Line("mcp-1", "mcp==1.30.0", LEGACY),
        Line("fastmcp-4", "fastmcp==4.1.6", (*LEGACY, MODERN)),
        Line("fastmcp-3", "fastmcp==3.4.10", LEGACY),
    )
}


@dataclass(frozen=True)
class Corpus:
    """The files of one SDK line, unchanged and with swapped imports."""

    line: Line
    original: Path
    swapped: Path

    def files(self) -> list[Path]:
        """The Python files that may contain a server, relative to the tree."""
        return [
            path.relative_to(self.original)
            for path in sorted(self.original.rglob("*.py"))
            if NAMES.search(path.read_text(errors="replace"))
        ]


def environment(line: Line, cache: Path) -> Path:
    """The Python of an environment with the SDK, installed once."""
    lock, folder = LOCKS / f"{line.name}.txt", cache / "env" / line.name
    python, stamp = folder / "bin" / "python", folder / "installed"
    digest = hashlib.sha256(lock.read_bytes() + repr(EXTRA).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        uv = shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")
        _run([uv, "venv", "--quiet", "--clear", "--python", "3.11", str(folder)])
        _run([uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), "-r", str(lock)])
        _run([uv, "pip", "install", "--quiet", "--python", str(python), *EXTRA])
        stamp.write_text(digest)
    return python


def sdist(line: Line, cache: Path) -> Path:
    """The folder of the release's source distribution, downloaded once."""
    name, _, version = line.release.partition("==")
    into = cache / "sdist"
    folder, archive = into / f"{name}-{version}", into / f"{name}-{version}.tar.gz"
    if not folder.exists():
        into.mkdir(parents=True, exist_ok=True)
        python = str(ROOT / ".venv" / "bin" / "python")
        choice = ["--no-deps", "--no-binary", ":all:", "--quiet", "--dest", str(into)]
        _run([python, "-m", "pip", "download", *choice, line.release])
        with tarfile.open(archive) as opened:
            opened.extractall(into, filter="data")
    return folder


def gather(source: Path, tree: Path) -> None:
    """Copies Python files with the other files of their folders, and the Python blocks of documents."""
    tops = [source / name for name in FOLDERS if (source / name).is_dir()] or [source]
    for path in sorted(path for top in tops for path in top.rglob("*")):
        relative = path.relative_to(source)
        if not path.is_file() or path.is_symlink() or LEFT_OUT.search(str(relative)):
            continue
        if path.suffix in (".md", ".mdx"):
            _blocks(path, tree / relative.with_suffix(""))
        elif path.stat().st_size < 1_000_000:
            (tree / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / relative)


def _blocks(document: Path, stem: Path) -> None:
    found = [match for match in BLOCK.finditer(document.read_text()) if MAKES_ONE.search(match["code"])]
    for number, match in enumerate(found, 1):
        name = re.sub(r"\W", "_", stem.name)
        path = stem.parent / f"{name}_{number:02}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(match["indent"] + match["code"]))


def import_roots(tree: Path, file: Path) -> list[str]:
    """The folders in which a file's imports are looked up: its own, and that of its package."""
    folder = (tree / file).parent
    top = folder
    while (top / "__init__.py").exists() and top != tree:
        top = top.parent
    return [str(folder), *([str(top)] if top != folder else [])]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
