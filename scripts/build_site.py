"""Builds the documentation site into target/site. Run it by `make site`, in the environment of site/requirements.txt.

The pages are docs/ and the documents of PAGES. Their sources name files of the repository by relative links. A link to
a document leads to its page; a link to a file that is no part of the site becomes its text; a link to nothing is an
error. zensical then checks the links between pages and their anchors.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
SITE = ROOT / "target" / "site"
SOURCE = ROOT / "target" / "site-source"
PAGES = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "adapters/README.md": "project/adapters.md",
    "benches/serve/README.md": "project/cost.md",
    "casebook/README.md": "project/casebook.md",
}
"""Documents outside docs/: place in the site by path in the repository."""
RUST = "target/doc"
"""The folder that `cargo doc` writes. The site has it as `rustdoc/`, if it exists."""
TOKEN = re.compile(
    r"^(?P<fence>```+)(?P<language>[\w-]*)(?P<words>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$"
    r"|(?P<code>`[^`\n]+`)"
    r"|(?P<mark>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)(?P<link>[^)\s]+)\)",
    re.M | re.S,
)


class LinkError(Exception):
    """A document has a link to a file that does not exist or is no picture."""


def main() -> int:
    """Exit code of zensical; 1 if a link leads nowhere."""
    for folder in (SITE, SOURCE):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        write_sources()
    except LinkError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    code = subprocess.run(command, cwd=SOURCE, check=False).returncode
    if code == 0:
        shutil.move(SOURCE / "site", SITE)
        if (ROOT / RUST).is_dir():
            shutil.copytree(ROOT / RUST, SITE / "rustdoc")
    return code


def write_sources() -> None:
    """Writes the pages and the configuration as zensical reads them."""
    docs = SOURCE / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("*.md"))
    for name in ("zensical.toml", "sphinx_roles.py"):
        shutil.copy(ROOT / "site" / name, SOURCE / name)
    for name in ("site.css", "late_search.js"):
        shutil.copy(ROOT / "site" / name, docs / name)
    shutil.copytree(ROOT / "site" / "overrides", SOURCE / "overrides")
    for document, place in documents().items():
        page = docs / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(rewritten((ROOT / document).read_text(), document), encoding="utf-8")


def documents() -> dict[str, str]:
    """All documents of the site: place in the site by path in the repository."""
    docs = ROOT / "docs"
    own = {path.relative_to(ROOT).as_posix(): path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))}
    return own | PAGES


def rewritten(text: str, document: str) -> str:
    """The text of a document as a page of the site."""

    def one(found: re.Match[str]) -> str:
        if found["fence"]:
            # A second word of a block, such as the marker of its test, is not a language.
            title = re.search(r'title="[^"]*"', found["words"])
            words = f" {title[0]}" if title else ""
            return f"{found['fence']}{found['language']}{words}\n{found['body']}{found['fence']}"
        if found["code"]:
            return found[0]
        link = site_link(found["link"], document)
        if link is None:
            return found["text"]
        if found["mark"]:
            # A click shows the picture in full size, which a phone needs. It is loaded when it is nearly in view; its
            # size keeps its place until then.
            width, height = picture_size((ROOT / document).parent / found["link"])
            return f"[![{found['text']}]({link}){{ loading=lazy width={width} height={height} }}]({link})"
        return f"[{rewritten(found['text'], document)}]({link})"

    return TOKEN.sub(one, text)


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height of a WebP with losses, as `make pictures` writes it.

    Raises :class:`LinkError` for another file.
    """
    head = path.read_bytes()[:30]
    match head[12:16]:
        case b"VP8 ":
            return struct.unpack("<HH", head[26:30])
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    raise LinkError(f"{path.relative_to(ROOT)} is no WebP with losses")


def site_link(link: str, document: str) -> str | None:
    """The link from the document's page; ``None`` for a file that is no part of the site.

    Raises :class:`LinkError` for a file that does not exist.
    """
    name, mark, heading = link.partition("#")
    if not name:
        return link
    target = os.path.normpath(PurePosixPath(document).parent / name)
    place = site_place(target)
    if place is None:
        if not target.startswith(RUST) and not (ROOT / target).exists():
            raise LinkError(f"{document} has a link to {link}, which does not exist")
        return None
    here = PurePosixPath(documents()[document]).parent
    return os.path.relpath(place, here) + mark + heading


def site_place(target: str) -> str | None:
    """The place in the site of a file of the repository, or ``None`` if it is no part of the site."""
    path = PurePosixPath(target)
    if path.is_relative_to(RUST) and (ROOT / target).exists():
        return f"rustdoc/{path.relative_to(RUST)}"
    if target in PAGES:
        return PAGES[target]
    if path.is_relative_to("docs") and (ROOT / target).is_file():
        return str(path.relative_to("docs"))
    return None


if __name__ == "__main__":
    sys.exit(main())
